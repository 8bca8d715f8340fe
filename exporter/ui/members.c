#include "exporter/ui/members.h"

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/http.h"
#include "exporter/base/json.h"
#include "exporter/num/num.h"

#include <math.h>

/* Writes a comma unless the next value is the first in its object or list. */
static void member_comma(struct out *o, char open)
{
    if (o->b->n && o->b->p[o->b->n - 1] != open)
        out_puts(o, ",");
}

void member(struct out *o, const char *key)
{
    member_comma(o, '{');
    out_puts(o, "\"");
    out_puts(o, key);
    out_puts(o, "\":");
}

void member_item(struct out *o)
{
    member_comma(o, '[');
}

void value_text(struct out *o, struct str s)
{
    if (o->error == 0)
        o->error = buf_put_json(o->b, s);
}

void member_text(struct out *o, const char *key, const char *value)
{
    member(o, key);
    if (value)
        value_text(o, str_of(value));
    else
        out_puts(o, "null");
}

void member_words(struct out *o, const char *key, const char *value)
{
    member_text(o, key, *cstr(value) ? value : NULL);
}

void value_number(struct out *o, double v)
{
    char digits[NUM_MAX];
    struct str s = {digits, num_put_double(digits, v)};

    if (isfinite(v))
        out_str(o, s);
    else
        value_text(o, s);
}

void member_number(struct out *o, const char *key, double v)
{
    member(o, key);
    value_number(o, v);
}

void member_count(struct out *o, const char *key, uint64_t v)
{
    char digits[NUM_MAX];

    member(o, key);
    out_str(o, (struct str){digits, num_put_u64(digits, v)});
}

void member_bool(struct out *o, const char *key, bool v)
{
    member(o, key);
    out_puts(o, v ? "true" : "false");
}

void member_time(struct out *o, const char *key, int64_t ms)
{
    char when[32];

    unix_ms_format((unix_ms){ms}, when);
    member_text(o, key, ms ? when : NULL);
}

void member_url(struct out *o, const char *key, const char *value)
{
    BUF_AUTO(plain, 1 << 20);

    if (o->error == 0 && value)
        o->error = http_url_for_people(str_of(value), &plain);
    member(o, key);
    if (value)
        value_text(o, buf_str(&plain));
    else
        out_puts(o, "null");
}

void member_object(struct out *o, const char *key)
{
    member(o, key);
    out_puts(o, "{");
}

void member_list(struct out *o, const char *key)
{
    member(o, key);
    out_puts(o, "[");
}

bool member_object_if(struct out *o, const char *key, bool there)
{
    if (there)
        member_object(o, key);
    else
        member_text(o, key, NULL);
    return there;
}
