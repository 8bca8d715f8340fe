#include "exporter/ui/out.h"

#include "exporter/base/http.h"

#include <stdio.h>

int out_end(struct out *o)
{
    if (o->error)
        buf_truncate(o->b, o->mark);
    return o->error;
}

void out_str(struct out *o, struct str s)
{
    if (o->error == 0)
        o->error = buf_put_str(o->b, s);
}

void out_puts(struct out *o, const char *s)
{
    out_str(o, str_of(s));
}

void out_url(struct out *o, const char *url)
{
    if (o->error == 0)
        o->error = http_url_for_people(str_of(url), o->b);
}

static void words_long(int64_t s, char out[WORDS_BYTES])
{
    static const struct {
        int64_t seconds, lesser;
        char unit, lesser_unit;
    } scales[] = {{86400, 3600, 'd', 'h'}, {3600, 60, 'h', 'm'}, {60, 1, 'm', 's'}};
    size_t i = 0;
    long long whole, rest;

    while (i + 1 < ARRAY_SIZE(scales) && s < scales[i].seconds)
        i++;
    whole = s / scales[i].seconds;
    rest = s % scales[i].seconds / scales[i].lesser;
    if (rest)
        (void)snprintf(out, WORDS_BYTES, "%lld%c %lld%c", whole, scales[i].unit, rest, scales[i].lesser_unit);
    else
        (void)snprintf(out, WORDS_BYTES, "%lld%c", whole, scales[i].unit);
}

void words_seconds(double s, char out[WORDS_BYTES])
{
    if (s >= 60)
        words_long(s < 9e15 ? (int64_t)s : (int64_t)9e15, out);
    else if (s >= 0.9995)
        (void)snprintf(out, WORDS_BYTES, "%.3g s", s);
    else
        (void)snprintf(out, WORDS_BYTES, "%.*f ms", s < 0.000995 ? 2 : s < 0.00995 ? 1 : 0, s * 1000);
}

void words_count(uint64_t n, char out[WORDS_BYTES])
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
    size_t at = 0;

    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
}
