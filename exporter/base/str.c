/* Pure, any thread. No locale is asked, and NUL is a byte like any other. */
#include "exporter/base/str.h"

#include "exporter/base/alloc.h"

int str_cmp(struct str a, struct str b)
{
    size_t n = size_min(a.n, b.n);
    int r = n ? memcmp(a.p, b.p, n) : 0;

    return r ?: COMPARE(a.n, b.n);
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Not strncasecmp(): that one stops at a NUL and asks the locale. */
bool str_eq_nocase(struct str a, struct str b)
{
    size_t i = 0;

    if (a.n != b.n)
        return false;
    while (i < a.n && lower(a.p[i]) == lower(b.p[i]))
        i++;
    return i == a.n;
}

bool str_starts(struct str s, struct str prefix)
{
    return s.n >= prefix.n && str_eq((struct str){s.p, prefix.n}, prefix);
}

bool str_has_only(struct str s, const char *others)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = lower(s.p[i]);

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr(others, c))))
            return false;
    }
    return true;
}

bool str_to_u64(struct str s, uint64_t *ret)
{
    uint64_t v = 0;
    bool over = false;

    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        over |= __builtin_mul_overflow(v, 10u, &v);
        over |= __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v);
    }
    *ret = over ? UINT64_MAX : v;
    return s.n > 0;
}

char *str_dup(struct str s)
{
    char *copy = xmalloc(s.n + 1);

    if (s.n)
        memcpy(copy, s.p, s.n);
    copy[s.n] = '\0';
    return copy;
}

struct str str_take(struct str *rest, char separator)
{
    const char *end = rest->n ? memchr(rest->p, separator, rest->n) : NULL;
    struct str part = {rest->p, end ? (size_t)(end - rest->p) : rest->n};
    size_t took = part.n + (end != NULL);

    if (took)
        *rest = (struct str){rest->p + took, rest->n - took};
    return part;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

struct str str_trim(struct str s)
{
    while (s.n && is_space(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n && is_space(s.p[s.n - 1]))
        s.n--;
    return s;
}
