#include "exporter/models/results.h"

#include "exporter/base/json.h"
#include "exporter/num/num.h"

void results_begin(struct results *rs, struct buf *out)
{
    *rs = (struct results){.out = out};
    rs->error = buf_puts(out, "{\"results\":[");
}

static bool result_replaces(const struct result *r, struct str raw)
{
    for (size_t i = 0; i < r->n_labels; i++)
        if (jr_key_is(raw, r->labels[i].name))
            return true;
    return false;
}

/* Copies the labels of the series, as they came, but for those that the model replaces. */
static int results_put_kept(struct buf *out, const struct result *r)
{
    struct str key, value;
    struct jr j;
    int e = 0;

    jr_init(&j, r->metric, JR_STRICT);
    (void)jr_object(&j);
    while (e == 0 && jr_member(&j, &key)) {
        (void)jr_skip(&j, &value);
        if (!result_replaces(r, key))
            e = buf_putc(out, '"') ?: buf_put_str(out, key) ?: buf_puts(out, "\":") ?: buf_put_str(out, value)
                ?: buf_putc(out, ',');
    }
    return e;
}

static int results_put_metric(struct buf *out, const struct result *r)
{
    int e;

    if (r->n_labels == 0)
        return buf_put_str(out, r->metric);
    e = buf_putc(out, '{') ?: results_put_kept(out, r);
    for (size_t i = 0; e == 0 && i < r->n_labels; i++)
        e = (i ? buf_putc(out, ',') : 0) ?: buf_put_json(out, str_of(r->labels[i].name)) ?: buf_putc(out, ':')
            ?: buf_put_json(out, r->labels[i].value);
    return e ?: buf_putc(out, '}');
}

/* 10.0 rather than 10, as the documents print it. */
static int results_put_score(struct buf *out, double score)
{
    char text[NUM_MAX];
    size_t n = num_put_double(text, score);

    return buf_put(out, text, n) ?: (memchr(text, '.', n) || memchr(text, 'e', n) ? 0 : buf_puts(out, ".0"));
}

void results_add(struct results *rs, const struct result *r)
{
    struct buf *out = rs->out;

    if (rs->error == 0)
        rs->error = buf_puts(out, rs->n ? ",{\"metric\":" : "{\"metric\":") ?: results_put_metric(out, r)
                    ?: buf_puts(out, ",\"score\":") ?: results_put_score(out, r->score);
    if (rs->error == 0 && r->members.n)
        rs->error = buf_putc(out, ',') ?: buf_put_str(out, r->members);
    if (rs->error == 0)
        rs->error = buf_putc(out, '}');
    rs->n += rs->error == 0;
}

int results_end(struct results *rs)
{
    return rs->error ?: buf_puts(rs->out, "]}");
}
