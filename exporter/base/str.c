#include "exporter/base/str.h"

#include "exporter/base/map.h"

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

/* After a mismatch only the last star is extended: each earlier one has matched the least it can, and more
 * would not help. */
bool glob_match(const char *pattern, const char *text)
{
    const char *star = NULL, *retry = NULL;

    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            retry = text;
        } else if (*pattern == '?' || *pattern == *text) {
            /* One character of UTF-8. */
            do {
                text++;
            } while (*pattern == '?' && ((unsigned char)*text & 0xc0) == 0x80);
            pattern++;
        } else if (star) {
            pattern = star + 1;
            text = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}

bool header_is_name(struct str s)
{
    return s.n > 0 && s.n <= 256 && str_has_only(s, "!#$%&'*+-.^_`|~");
}

bool header_is_value(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (((unsigned char)s.p[i] < 0x20 && s.p[i] != '\t') || s.p[i] == 0x7f)
            return false;
    return s.n > 0 && s.n <= HEADER_VALUE_MAX;
}

bool header_is_reserved(struct str name)
{
    static const char *const reserved[] = {"Content-Type",
                                           "Content-Encoding",
                                           "Content-Length",
                                           "User-Agent",
                                           "Host",
                                           "Authorization",
                                           "Transfer-Encoding",
                                           "Connection",
                                           "Accept-Encoding",
                                           "Expect",
                                           "X-Prometheus-Remote-Write-Version",
                                           "X-VictoriaMetrics-Remote-Write-Version"};

    for (size_t i = 0; i < ARRAY_SIZE(reserved); i++)
        if (str_eq_nocase(name, str_of(reserved[i])))
            return true;
    return false;
}

/* ---- Sorting of names: by eight bytes at a time ---- */

struct sort_item {
    uint64_t key; /* eight bytes, the first one uppermost */
    uint32_t place;
};

/* Reads the keys behind what all of these have in common, and returns the depth there. They are equal
 * up to `depth`. */
static size_t sort_read_keys(const struct str *list, struct sort_item *items, size_t n, size_t depth)
{
    struct str first = list[items[0].place];
    size_t common = first.n;

    for (size_t i = 1; i < n; i++) {
        struct str name = list[items[i].place];
        size_t k = depth;

        common = size_min(common, name.n);
        while (k + 8 <= common && memcmp(first.p + k, name.p + k, 8) == 0)
            k += 8;
        while (k < common && first.p[k] == name.p[k])
            k++;
        common = k;
    }
    for (size_t i = 0; i < n; i++) {
        struct str name = list[items[i].place];

        items[i].key = 0;
        memcpy(&items[i].key, name.p + common, size_min(name.n - common, sizeof(items[i].key)));
        items[i].key = be64toh(items[i].key);
    }
    return common;
}

static void sort_swap(struct sort_item *x, struct sort_item *y)
{
    struct sort_item was = *x;

    *x = *y;
    *y = was;
}

/* Quicksort; no answer can be made to be slow to sort, as the pivots depend on this process' key. */
static void sort_items(const struct str *list, struct sort_item *items, size_t n, size_t depth)
{
    while (n > 1) {
        uint64_t pivot = items[hash_chain_u64(depth, n) % n].key;
        size_t less = 0, i = 0, end = n;

        while (i < end)
            if (items[i].key < pivot)
                sort_swap(&items[i++], &items[less++]);
            else if (items[i].key > pivot)
                sort_swap(&items[i], &items[--end]);
            else
                i++;
        sort_items(list, items, less, depth);
        sort_items(list, items + end, n - end, depth);
        items += less;
        n = end - less;
        if (n > 1)
            depth = sort_read_keys(list, items, n, depth + sizeof(pivot));
    }
}

uint32_t *str_order(const struct str *list, size_t n)
{
    struct sort_item *items = xcalloc(size_max(n, 1), sizeof(*items));
    uint32_t *order = xcalloc(size_max(n, 1), sizeof(*order));

    for (size_t i = 0; i < n; i++)
        items[i].place = (uint32_t)i;
    if (n)
        sort_items(list, items, n, sort_read_keys(list, items, n, 0));
    for (size_t i = 0; i < n; i++)
        order[i] = items[i].place;
    free(items);
    return order;
}
