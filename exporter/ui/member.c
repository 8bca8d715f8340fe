/* Writes one member after the other into the caller's buffer; what is before the next one says whether a
 * comma is due. Owns nothing; the thread that has the buffer and what is shown. */
#include "exporter/ui/member.h"

#include "exporter/base/clock.h"
#include "exporter/base/escape.h"
#include "exporter/http/http.h"
#include "exporter/metric/history.h"
#include "exporter/metric/metrics.h"
#include "exporter/num/num.h"
#include "exporter/web/access.h"

#include <math.h>

/* Writes a comma unless the next value is the first in its object or list. */
static void member_comma(struct buf *o, char open)
{
    if (o->n && o->p[o->n - 1] != open)
        buf_puts(o, ",");
}

void member(struct buf *o, const char *key)
{
    member_comma(o, '{');
    buf_puts(o, "\"");
    buf_puts(o, key);
    buf_puts(o, "\":");
}

void member_item(struct buf *o)
{
    member_comma(o, '[');
}

void member_text(struct buf *o, const char *key, const char *value)
{
    member(o, key);
    if (value)
        buf_put_json(o, str_of(value));
    else
        buf_puts(o, "null");
}

void member_words(struct buf *o, const char *key, const char *value)
{
    member_text(o, key, *cstr(value) ? value : NULL);
}

void value_number(struct buf *o, double v)
{
    char digits[NUM_MAX];
    struct str s = {digits, num_put_double(digits, v)};

    if (isfinite(v))
        buf_put_str(o, s);
    else
        buf_put_json(o, s);
}

void member_number(struct buf *o, const char *key, double v)
{
    member(o, key);
    value_number(o, v);
}

void member_count(struct buf *o, const char *key, uint64_t v)
{
    char digits[NUM_MAX];

    member(o, key);
    buf_put_str(o, (struct str){digits, num_put_u64(digits, v)});
}

void member_bool(struct buf *o, const char *key, bool v)
{
    member(o, key);
    buf_puts(o, v ? "true" : "false");
}

void member_time(struct buf *o, const char *key, int64_t ms)
{
    char when[32];

    unix_ms_format((unix_ms){ms}, when);
    member_text(o, key, ms ? when : NULL);
}

void member_url(struct buf *o, const char *key, const char *value)
{
    BUF_AUTO(plain, 1 << 20);
    int r;

    if (!value) {
        member_text(o, key, NULL);
        return;
    }
    http_url_for_people(str_of(value), &plain);
    r = buf_failed(&plain);
    if (r < 0) {
        buf_fail(o, r);
        return;
    }
    member(o, key);
    buf_put_json(o, buf_str(&plain));
}

void member_object(struct buf *o, const char *key)
{
    member(o, key);
    buf_puts(o, "{");
}

void member_list(struct buf *o, const char *key)
{
    member(o, key);
    buf_puts(o, "[");
}

bool member_object_if(struct buf *o, const char *key, bool there)
{
    if (there)
        member_object(o, key);
    else
        member_text(o, key, NULL);
    return there;
}

void member_build(struct buf *o)
{
    member_object(o, "build");
    member_text(o, "version", ds_version);
    member_text(o, "revision", ds_revision);
    buf_puts(o, "}");
}

void member_problems(struct buf *o, const char *problems)
{
    struct str rest = str_of(problems);

    member_list(o, "problems");
    while (rest.n) {
        struct str line = str_take(&rest, '\n');

        if (line.n) {
            member_item(o);
            buf_put_json(o, line);
        }
    }
    buf_puts(o, "]");
}

void member_web_config(struct buf *o, const struct access *access)
{
    const struct access_status *s = access_status(access);

    if (!member_object_if(o, "webConfig", s))
        return;
    member_text(o, "file", s->file);
    member_bool(o, "ok", s->ok);
    member_time(o, "lastTriedAt", s->at_ms);
    member_problems(o, s->problems);
    buf_puts(o, "}");
}

static void member_history_column(struct buf *o, const char *name, const struct history *h, size_t column)
{
    member_list(o, name);
    for (size_t row = 0; row < history_rows(h); row++) {
        double v = history_value(h, row, column);

        member_item(o);
        if (isfinite(v))
            buf_printf(o, "%.6g", v); /* more digits than a plot can show */
        else
            buf_puts(o, "null");
    }
    buf_puts(o, "]");
}

void member_history(struct buf *o, const struct history *h, const char *const *names)
{
    member_object(o, "history");
    member_list(o, "unixSeconds");
    for (size_t row = 0; row < history_rows(h); row++) {
        member_item(o);
        buf_printf(o, "%u", history_seconds(h, row));
    }
    buf_puts(o, "]");
    for (size_t column = 0; names[column]; column++)
        member_history_column(o, names[column], h, column);
    buf_puts(o, "}");
}
