/* Fixed scores by label sets, from the configuration. */
#ifndef DS_MODELS_SCORE_TABLE_H
#define DS_MODELS_SCORE_TABLE_H

#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/models/results.h"

enum { SCORE_TABLE_MAX_BYTES = 16 << 20 };

struct score_row {
    size_t at, n; /* the metric, as JSON, in `text` */
    double score;
};

/* Zeroed: empty. */
struct score_table {
    struct buf text;
    struct score_row *rows;
    size_t n, cap;
};

void score_table_done(struct score_table *t);
/* Adds rows of a text: labels and a score, "app=app01,device=all 80", separated by semicolons or line ends.
 * -EINVAL and *ret_why (from malloc), -ENOMEM. */
MUST_USE int score_table_parse(struct score_table *t, const char *text, char **ret_why);
/* Adds the rows of a list [{metric: {app: app01, device: all}, score: 80}]. Problems are added to p. */
void score_table_read(struct score_table *t, const struct node *list, struct problems *p);
void score_table_write(const struct score_table *t, struct results *rs);

#endif
