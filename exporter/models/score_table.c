#include "exporter/models/score_table.h"

#include "exporter/base/json.h"
#include "exporter/base/problems.h"
#include "exporter/num/num.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { FIRST_ROWS = 16 };

void score_table_done(struct score_table *t)
{
    buf_done(&t->text);
    free(t->rows);
    *t = (struct score_table){0};
}

/* The metric has been written to t->text from `at`. */
static int table_add(struct score_table *t, size_t at, double score)
{
    if (t->n == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : FIRST_ROWS;
        struct score_row *rows = realloc(t->rows, cap * sizeof(*rows));

        if (!rows)
            return -ENOMEM;
        t->rows = rows;
        t->cap = cap;
    }
    t->rows[t->n++] = (struct score_row){at, t->text.n - at, score};
    return 0;
}

static int table_put_label(struct score_table *t, bool first, struct str name, struct str value)
{
    struct buf *b = &t->text;

    b->max = SCORE_TABLE_MAX_BYTES;
    return buf_putc(b, first ? '{' : ',')
               ?: buf_put_json(b, name) ?: buf_putc(b, ':') ?: buf_put_json(b, value);
}

static bool is_score(struct str text, double *ret)
{
    return num_parse(text, ret) == NUM_OK && isfinite(*ret);
}

/* The text up to a character of `stops`; moves past it. */
static struct str table_cut(struct str *rest, const char *stops)
{
    struct str cut = {rest->p, 0};

    while (cut.n < rest->n && !strchr(stops, rest->p[cut.n]))
        cut.n++;
    *rest =
        cut.n < rest->n ? (struct str){rest->p + cut.n + 1, rest->n - cut.n - 1} : (struct str){rest->p, 0};
    return cut;
}

/* "app=app01,device=all 80" */
static int table_parse_row(struct score_table *t, struct str row)
{
    size_t at = t->text.n, space = row.n;
    struct str labels;
    double score;
    int r = 0;

    while (space > 0 && row.p[space - 1] != ' ' && row.p[space - 1] != '\t')
        space--;
    if (!is_score((struct str){row.p + space, row.n - space}, &score))
        return -EINVAL;
    labels = str_trim((struct str){row.p, space});
    if (labels.n == 0)
        r = -EINVAL;
    for (bool first = true; r == 0 && labels.n; first = false) {
        struct str value = table_cut(&labels, ","), name = table_cut(&value, "=");

        /* Without "=" the name takes all of it, and the rest still begins where the name does. */
        r = name.n && value.p != name.p ? table_put_label(t, first, str_trim(name), str_trim(value))
                                        : -EINVAL;
    }
    return r ?: buf_putc(&t->text, '}') ?: table_add(t, at, score);
}

int score_table_parse(struct score_table *t, const char *text, char **ret_why)
{
    struct str rest = str_of(text);
    int r = 0;

    while (r == 0 && rest.n) {
        struct str row = str_trim(table_cut(&rest, ";\n"));

        if (row.n == 0)
            continue;
        r = table_parse_row(t, row);
        if (r == -EINVAL && asprintf(ret_why,
                                     "row \"%.*s\": expected labels and a score, like "
                                     "app=app01,device=all 80",
                                     (int)size_min(row.n, 80), row.p) < 0)
            r = -ENOMEM;
    }
    return r;
}

static int table_read_row(struct score_table *t, const struct node *row, struct problems *p)
{
    const struct node *metric = node_get(row, "metric"), *score = node_get(row, "score");
    static const char *const keys[] = {"metric", "score", NULL};
    size_t at = t->text.n;
    double v;
    int r = 0;

    node_only_keys(row, keys, PROBLEM_ERROR, p);
    if (!metric || metric->kind != NODE_MAP || metric->n == 0)
        node_expected(metric ? metric : row, p, "an object with labels as \"metric\"");
    else if (!score || (score->kind != NODE_INT && score->kind != NODE_DOUBLE) || !is_score(score->text, &v))
        node_expected(score ? score : row, p, "a number as \"score\"");
    else {
        for (size_t i = 0; r == 0 && i < metric->n; i++)
            r = table_put_label(t, i == 0, metric->items[i]->key, metric->items[i]->text);
        return r ?: buf_putc(&t->text, '}') ?: table_add(t, at, v);
    }
    return 0;
}

void score_table_read(struct score_table *t, const struct node *list, struct problems *p)
{
    if (list->kind != NODE_LIST) {
        node_expected(list, p, "a list of objects with \"metric\" and \"score\"");
        return;
    }
    for (size_t i = 0; i < list->n; i++)
        if (table_read_row(t, list->items[i], p) < 0)
            p->out_of_memory = true;
}

void score_table_write(const struct score_table *t, struct results *rs)
{
    for (size_t i = 0; i < t->n; i++)
        results_add(rs, &(struct result){.metric = {t->text.p + t->rows[i].at, t->rows[i].n},
                                         .score = t->rows[i].score});
}
