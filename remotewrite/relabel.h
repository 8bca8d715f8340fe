/* write_relabel_configs: which series an endpoint gets, and with which labels. As Prometheus does it, except that expressions
 * are POSIX extended ones (anchored at both ends, as there). */
#ifndef DS_REMOTEWRITE_RELABEL_H
#define DS_REMOTEWRITE_RELABEL_H

#include "exporter/base/doc.h"

struct relabel_rule;

struct relabel_rules {
    struct relabel_rule *list;
    size_t n;
};

/* A label while a series' set of them is put together. */
struct label {
    struct str name, value;
};

enum { RELABEL_MAX_RULES = 64, LABELS_MAX = 128, LABEL_ROOM = 1 << 20 };

/* Names are unique, in no order. Text that was made for it lives in `room`, LABEL_ROOM bytes that do not move. */
struct label_list {
    struct label list[LABELS_MAX];
    size_t n;
    char *room;
    size_t used;
};

/* The list node; problems go to p. 0 also with problems; -ENOMEM. The caller frees in any case. */
MUST_USE int relabel_read(struct relabel_rules *ret, const struct node *list, struct problems *p);
/* Why this expression is not even tried; NULL when it may be. */
const char *relabel_regex_problem(struct str regex);
void relabel_done(struct relabel_rules *r);
/* 1 when the series stays, 0 when it is dropped; -EFBIG when its labels are too many or too long. */
MUST_USE int relabel_apply(const struct relabel_rules *r, struct label_list *l);

#endif
