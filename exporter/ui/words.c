/* Durations and counts as people write them. Owns nothing. */
#include "exporter/ui/words.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct phrase words_seconds(double s)
{
    static const struct {
        int64_t seconds, lesser;
        char unit, lesser_unit;
    } scales[] = {{86400, 3600, 'd', 'h'}, {3600, 60, 'h', 'm'}, {60, 1, 'm', 's'}};
    struct phrase w;
    size_t i = 0;
    int64_t whole;
    int n;

    if (!(s >= 60)) {
        if (s >= 0.9995)
            (void)snprintf(w.s, sizeof(w.s), "%.3g s", s);
        else
            (void)snprintf(w.s, sizeof(w.s), "%.*f ms", s < 0.000995 ? 2 : s < 0.00995 ? 1 : 0, s * 1000);
        return w;
    }
    whole = s < 9e15 ? (int64_t)s : (int64_t)9e15;
    while (whole < scales[i].seconds)
        i++;
    n = snprintf(w.s, sizeof(w.s), "%lld%c", (long long)(whole / scales[i].seconds), scales[i].unit);
    whole = whole % scales[i].seconds / scales[i].lesser;
    if (whole)
        (void)snprintf(w.s + n, sizeof(w.s) - (size_t)n, " %lld%c", (long long)whole, scales[i].lesser_unit);
    return w;
}

struct phrase words_count(uint64_t n, const char *one, const char *many)
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
    struct phrase w;
    size_t at = 0;

    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            w.s[at++] = ',';
        w.s[at++] = digits[i];
    }
    (void)snprintf(w.s + at, sizeof(w.s) - at, " %s", n == 1 ? one : many);
    return w;
}
