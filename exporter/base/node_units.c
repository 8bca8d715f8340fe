/* Sizes and durations with units. */
#include "exporter/base/doc.h"

#include <stdio.h>

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit sizes[] = {
    {"GiB", 1ull << 30}, {"MiB", 1ull << 20}, {"KiB", 1ull << 10},
    {"GB", 1000000000},  {"MB", 1000000},     {"KB", 1000},
};

/* In the order required within a duration. */
static const struct unit times[] = {
    {"y", 31536000000}, {"w", 604800000}, {"d", 86400000}, {"h", 3600000},
    {"m", 60000},       {"s", 1000},      {"ms", 1},
};

enum { SHOWN = 32 };

/* Formats v in the largest unit that divides it. */
static void format_in_units(char out[SHOWN], uint64_t v, const struct unit *units, size_t n, const char *bare)
{
    for (size_t i = 0; i < n && v; i++)
        if (v % units[i].factor == 0 && v / units[i].factor < 1000) {
            (void)snprintf(out, SHOWN, "%llu%s", (unsigned long long)(v / units[i].factor), units[i].name);
            return;
        }
    (void)snprintf(out, SHOWN, "%llu%s", (unsigned long long)v, bare);
}

/* Reads the digits at the start of *s and moves past them. False without a digit and on overflow. */
static bool take_digits(struct str *s, uint64_t *ret)
{
    size_t i = 0;
    uint64_t v = 0;

    for (; i < s->n && s->p[i] >= '0' && s->p[i] <= '9'; i++)
        if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (uint64_t)(s->p[i] - '0'), &v))
            return false;
    *s = (struct str){s->p + i, s->n - i};
    *ret = v;
    return i > 0;
}

static bool parse_size(const struct node *n, uint64_t *ret)
{
    struct str s = n->text;
    uint64_t v;

    if ((n->kind != NODE_INT && n->kind != NODE_STRING) || !take_digits(&s, &v))
        return false;
    if (n->kind == NODE_INT) {
        *ret = v;
        return s.n == 0;
    }
    s = str_trim(s);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
        if (str_eq_nocase(s, str_of(sizes[i].name)))
            return !__builtin_mul_overflow(v, sizes[i].factor, ret);
    return false;
}

bool node_bytes(const struct node *map, const char *key, struct problems *p, uint64_t min, uint64_t max,
                uint64_t *ret)
{
    const struct node *n = node_given(map, key);
    char low[SHOWN], high[SHOWN];
    uint64_t v;

    if (!n)
        return true;
    if (parse_size(n, &v) && v >= min && v <= max) {
        *ret = v;
        return true;
    }
    format_in_units(low, min, sizes, 3, " bytes");
    format_in_units(high, max, sizes, 3, " bytes");
    node_expected(n, p, "a size from %s to %s (a number of bytes, or like 64MiB)", low, high);
    return false;
}

/* "90", "1.5", "0.250": seconds, to the millisecond. */
static bool parse_seconds(struct str s, uint64_t *ret)
{
    uint64_t whole = 0, ms = 0, scale = 1000;

    if (s.n && s.p[0] == '+')
        s = (struct str){s.p + 1, s.n - 1};
    if (!take_digits(&s, &whole) && !(s.n && s.p[0] == '.'))
        return false;
    for (size_t i = 1; s.n && s.p[0] == '.' && i < s.n; i++) {
        scale /= 10;
        if (s.p[i] < '0' || s.p[i] > '9' || (scale == 0 && s.p[i] != '0'))
            return false;
        ms += scale * (uint64_t)(s.p[i] - '0');
    }
    if (s.n && s.p[0] != '.')
        return false;
    return !__builtin_mul_overflow(whole, 1000u, ret) && !__builtin_add_overflow(*ret, ms, ret);
}

/* Each unit at most once, from the largest to the smallest. */
static bool parse_duration(struct str s, uint64_t *ret)
{
    uint64_t sum = 0, v;
    size_t next = 0;

    if (str_eq(s, STR("0"))) {
        *ret = 0;
        return true;
    }
    do {
        size_t letters = 0, i = next;

        if (!take_digits(&s, &v))
            return false;
        while (letters < s.n && s.p[letters] >= 'a' && s.p[letters] <= 'z')
            letters++;
        while (i < ARRAY_SIZE(times) && !str_eq((struct str){s.p, letters}, str_of(times[i].name)))
            i++;
        if (i == ARRAY_SIZE(times) || __builtin_mul_overflow(v, times[i].factor, &v) ||
            __builtin_add_overflow(sum, v, &sum))
            return false;
        s = (struct str){s.p + letters, s.n - letters};
        next = i + 1;
    } while (s.n);
    *ret = sum;
    return true;
}

bool duration_parse(struct str text, int64_t *ret_ms)
{
    uint64_t v;

    if ((!parse_seconds(text, &v) && !parse_duration(text, &v)) || v > INT64_MAX)
        return false;
    *ret_ms = (int64_t)v;
    return true;
}

bool node_duration(const struct node *map, const char *key, struct problems *p, int64_t min_ms,
                   int64_t max_ms, int64_t *ret_ms)
{
    const struct node *n = node_given(map, key);
    char low[SHOWN], high[SHOWN];
    uint64_t v;
    bool good;

    if (!n)
        return true;
    if (n->kind == NODE_INT || n->kind == NODE_DOUBLE)
        good = parse_seconds(n->text, &v);
    else
        good = n->kind == NODE_STRING && parse_duration(n->text, &v);
    if (good && v <= INT64_MAX && (int64_t)v >= min_ms && (int64_t)v <= max_ms) {
        *ret_ms = (int64_t)v;
        return true;
    }
    format_in_units(low, (uint64_t)min_ms, &times[2], 5, "s");
    format_in_units(high, (uint64_t)max_ms, &times[2], 5, "s");
    node_expected(n, p, "a duration from %s to %s (a number of seconds, or like 30s, 5m, 1h30m)", low, high);
    return false;
}
