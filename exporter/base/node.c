/* Reads a document's tree: members, typed values, and problems with the path of their node. */
#include "exporter/base/alloc.h"
#include "exporter/base/arena.h"
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/log.h"
#include "exporter/base/secret.h"
#include "exporter/base/utf8.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* ---- Problems ---- */

enum { PROBLEMS_MAX = 10000, QUOTE_MAX = 80, READ_MAX = 64 << 10 };

void problems_init(struct problems *p, const char *file)
{
    *p = (struct problems){.file = xstrdup(file)};
}

void problems_init_configmap(struct problems *p, const char *name)
{
    char *file = xasprintf("configmap %s", name);

    *p = (struct problems){.file = file, .configmap = file + strlen("configmap ")};
}

void problems_done(struct problems *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->list[i].text);
    free(p->list);
    free(p->file);
    *p = (struct problems){0};
}

/* Takes ownership of text, which starts with a path of path_n bytes. The list doubles whenever its length is
 * a power of two. */
static void push_problem(struct problems *p, const struct doc_problem *at, char *text, size_t path_n)
{
    struct doc_problem *x;

    p->errors += at->kind == PROBLEM_ERROR;
    if (p->n == PROBLEMS_MAX) {
        p->left_out++;
        free(text);
        return;
    }
    if ((p->n & (p->n - 1)) == 0)
        p->list = xreallocarray(p->list, size_max(2 * p->n, 1), sizeof(*p->list));
    x = &p->list[p->n++];
    *x = *at;
    x->text = text;
    x->path = (struct str){text, path_n};
    x->message = str_of(text + path_n + (path_n ? strlen(": ") : 0));
}

void problems_add(struct problems *p, enum problem_kind kind, unsigned line, unsigned column, const char *fmt,
                  ...)
{
    va_list ap;

    va_start(ap, fmt);
    push_problem(p, &(struct doc_problem){.kind = kind, .line = line, .column = column}, xvasprintf(fmt, ap),
                 0);
    va_end(ap);
}

void problems_add_field(struct problems *p, const struct doc_problem *at, struct str path, struct str message)
{
    push_problem(p, at, xasprintf("%.*s%s%.*s", STR_ARG(path), path.n ? ": " : "", STR_ARG(message)), path.n);
}

DEFINE_ORDER(compare_problems, struct doc_problem,
             COMPARE(a->line, b->line) ?: COMPARE(a->column, b->column)
                 ?: COMPARE(a->kind, b->kind) ?: strcmp(a->text, b->text))

void problems_sort(struct problems *p)
{
    if (p->n > 1)
        qsort(p->list, p->n, sizeof(p->list[0]), compare_problems);
}

void problems_print(const struct problems *p, struct buf *into)
{
    static const char *const words[] = {[PROBLEM_ERROR] = "error", [PROBLEM_WARNING] = "warning"};

    for (size_t i = 0; i < p->n; i++) {
        const struct doc_problem *x = &p->list[i];

        buf_printf(into, "%s:", p->file);
        if (x->line)
            buf_printf(into, "%u:%u:", x->line, x->column);
        buf_printf(into, " %s: %s\n", words[x->kind], x->text);
    }
    if (p->left_out)
        buf_printf(into, "%s: %zu more problems are not shown\n", p->file, p->left_out);
}

void problem_choices(const char *const *words, struct buf *into)
{
    for (size_t i = 0; words[i]; i++) {
        bool is_last = !words[i + 1];

        if (i > 0)
            buf_puts(into, is_last ? " or " : ", ");
        buf_puts(into, words[i]);
    }
}

static void problem_put_escaped(struct str text, struct buf *into)
{
    while (text.n && buf_failed(into) == 0) {
        size_t n = utf8_char(text);
        unsigned char c = (unsigned char)*text.p;
        bool is_control = c < 0x20 || c == 0x7f;

        if (n == 0 || is_control) {
            buf_printf(into, "\\x%02x", c);
            n = 1;
        } else {
            buf_put(into, text.p, n);
        }
        text = (struct str){text.p + n, text.n - n};
    }
}

/* Anything before an `@` may be a password, even in a malformed URL. */
void problem_quote(struct str given, struct buf *into)
{
    CLEANUP(cleanup_free) char *copy = str_dup((struct str){given.p, size_min(given.n, READ_MAX)});
    /* Before it is cut: half of a secret would not be found. */
    struct str all = {copy, secret_hide(copy, size_min(given.n, READ_MAX))}, shown = all;
    const char *slashes = memmem(all.p, all.n, "://", 3), *at = memrchr(all.p, '@', all.n), *query;

    buf_putc(into, '"');
    if (at) {
        if (slashes && slashes < at)
            problem_put_escaped((struct str){all.p, (size_t)(slashes + 3 - all.p)}, into);
        buf_puts(into, "***@");
        shown = (struct str){at + 1, (size_t)(all.p + all.n - at - 1)};
    }
    query = slashes ? memchr(shown.p, '?', shown.n) : NULL;
    shown = utf8_cut(shown, size_min(query ? (size_t)(query - shown.p) : shown.n, QUOTE_MAX));
    problem_put_escaped(shown, into);
    buf_putc(into, '"');
    if (shown.p + shown.n < all.p + all.n)
        buf_puts(into, "…");
}

struct log_field problems_origin(const struct problems *p)
{
    return p->configmap ? L_STR("configmap", p->configmap) : L_STR("file", p->file);
}

void problems_log(const struct problems *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct doc_problem *x = &p->list[i];
        enum log_level level = x->kind == PROBLEM_ERROR ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN;
        const char *what = x->kind == PROBLEM_ERROR ? "configuration error" : "configuration warning";

        if (x->line)
            LOG_AT(level, what, problems_origin(p), L_INT("line", x->line), L_INT("column", x->column),
                   L_STR("err", x->text));
        else
            LOG_AT(level, what, problems_origin(p), L_STR("err", x->text));
    }
}

/* ---- Nodes ---- */

enum { NAME_MAX_BYTES = 40, MESSAGE_MAX = 64 * 1024, SHOWN_MAX = 80, KEY_MAX = 48, SHOWN = 32 };

const struct node *node_get(const struct node *map, const char *key)
{
    struct str name = str_of(key);

    if (!map || map->kind != NODE_MAP)
        return NULL;
    for (size_t i = 0; i < map->n; i++)
        if (str_eq(map->items[i]->key, name))
            return map->items[i];
    return NULL;
}

const struct node *node_given(const struct node *map, const char *key)
{
    const struct node *n = node_get(map, key);

    return n && n->kind != NODE_NULL ? n : NULL;
}

/* ---- Problems at a node ---- */

/* Whether the node is in a field for credentials: nothing of its value may be shown. */
static bool is_secret_node(const struct node *n)
{
    static const char *const secret[] = {"authorization", "basic_auth",  "basic_auth_users",
                                         "headers",       "credentials", "password"};

    for (; n->parent; n = n->parent)
        for (size_t i = 0; n->parent->kind == NODE_MAP && i < ARRAY_SIZE(secret); i++)
            if (str_eq_nocase(n->key, str_of(secret[i])))
                return true;
    return false;
}

/* A value may stand where a key should: `authorization: {Bearer abc}`. Names have no digits and no spaces. */
static bool is_secret_key(const struct node *n)
{
    bool is_name = n->key.n <= KEY_MAX;

    for (size_t i = 0; i < n->key.n; i++)
        is_name &= n->key.p[i] == '_' || n->key.p[i] == '-' || isalpha((unsigned char)n->key.p[i]);
    return !is_name && is_secret_node(n->parent);
}

/* Appends "summaries[2].scoringInterval"; nothing for the root. */
static void node_put_path(const struct node *n, struct buf *into)
{
    bool is_plain = n->key.n > 0 && n->key.n <= SHOWN_MAX && str_has_only(n->key, "_-");

    if (!n->parent)
        return;
    node_put_path(n->parent, into);
    if (n->parent->kind == NODE_LIST) {
        buf_printf(into, "[%zu]", n->index);
    } else if (is_secret_key(n)) {
        buf_puts(into, "[...]");
    } else if (is_plain) {
        if (n->parent->parent)
            buf_putc(into, '.');
        buf_put_str(into, n->key);
    } else {
        buf_putc(into, '[');
        problem_quote(n->key, into);
        buf_putc(into, ']');
    }
}

/* A root scalar is not shown: the file is not a configuration then, and may be a secret. */
static void node_put_value(const struct node *n, struct buf *into)
{
    bool is_scalar = n->kind != NODE_LIST && n->kind != NODE_MAP && n->kind != NODE_NULL;

    if (n->kind == NODE_LIST) {
        buf_puts(into, "a list");
    } else if (n->kind == NODE_MAP) {
        buf_puts(into, "an object");
    } else if (n->kind == NODE_NULL) {
        buf_puts(into, n->parent ? "null" : "nothing");
    } else if (is_scalar && is_secret_node(n)) {
        buf_puts(into, "a value");
    } else if (!n->parent) {
        buf_puts(into, n->kind == NODE_STRING ? "a string" : "a single value");
    } else if (n->kind != NODE_STRING) {
        buf_put(into, n->text.p, size_min(n->text.n, SHOWN_MAX));
    } else if (n->text.n == 0) {
        buf_puts(into, "an empty string");
    } else {
        buf_puts(into, "the string ");
        problem_quote(n->text, into);
    }
}

/* "<path>: <text>", or "<path>: expected <text>, got <value>". */
static void node_report(const struct node *n, struct problems *p, const struct doc_problem *at, bool expected,
                        const char *fmt, va_list ap)
{
    BUF_AUTO(path, MESSAGE_MAX);
    BUF_AUTO(text, MESSAGE_MAX);

    node_put_path(n, &path);
    if (expected)
        buf_puts(&text, "expected ");
    buf_vprintf(&text, fmt, ap);
    if (expected) {
        buf_puts(&text, ", got ");
        node_put_value(n, &text);
    }
    problems_add_field(p, at, buf_str(&path), buf_str(&text));
}

void node_problem(const struct node *n, struct problems *p, enum problem_kind kind, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    node_report(n, p, &(struct doc_problem){.kind = kind, .line = n->line, .column = n->column}, false, fmt,
                ap);
    va_end(ap);
}

void node_key_problem(const struct node *n, struct problems *p, enum problem_kind kind, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    node_report(n, p, &(struct doc_problem){.kind = kind, .line = n->key_line, .column = n->key_column},
                false, fmt, ap);
    va_end(ap);
}

bool node_expected(const struct node *n, struct problems *p, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (n->kind != NODE_BROKEN)
        node_report(n, p, &(struct doc_problem){.line = n->line, .column = n->column}, true, fmt, ap);
    va_end(ap);
    return false;
}

void node_missing(const struct node *map, const char *key, struct problems *p, const char *what)
{
    struct doc_problem at = {.missing = true, .line = map->line, .column = map->column};
    CLEANUP(cleanup_free) char *text = xasprintf("missing, expected %s", what);
    BUF_AUTO(path, MESSAGE_MAX);

    node_put_path(map, &path);
    if (map->parent)
        buf_putc(&path, '.');
    buf_puts(&path, key);
    problems_add_field(p, &at, buf_str(&path), str_of(text));
}

/* ---- Unknown keys: most are spelling mistakes, so the nearest known name is suggested ---- */

/* Levenshtein's distance, ignoring case; SIZE_MAX for long names. */
static size_t edit_distance(struct str a, struct str b)
{
    size_t row[NAME_MAX_BYTES + 1];

    if (a.n > NAME_MAX_BYTES || b.n > NAME_MAX_BYTES)
        return SIZE_MAX;
    for (size_t j = 0; j <= b.n; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t before = row[0];

        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            bool differ = tolower((unsigned char)a.p[i - 1]) != tolower((unsigned char)b.p[j - 1]);
            size_t replaced = before + differ;

            before = row[j];
            row[j] = size_min(size_min(row[j], row[j - 1]) + 1, replaced);
        }
    }
    return row[b.n];
}

const char *name_nearest(struct str key, const char *const *known)
{
    const char *best = NULL;
    size_t best_distance = size_min(1 + key.n / 4, 3) + 1;

    for (; key.n >= 2 && *known; known++) {
        size_t d = edit_distance(key, str_of(*known));

        if (d < best_distance) {
            best = *known;
            best_distance = d;
        }
    }
    return best;
}

static void report_unknown_key(const struct node *n, const char *const *known, enum problem_kind kind,
                               struct problems *p)
{
    const char *name = name_nearest(n->key, known);
    BUF_AUTO(list, 4096);

    for (size_t i = 0; known[i]; i++) {
        if (i > 0)
            buf_puts(&list, ", ");
        buf_puts(&list, known[i]);
    }
    if (name)
        node_key_problem(n, p, kind, "unknown key, did you mean %s?", name);
    else
        node_key_problem(n, p, kind, "unknown key, expected one of %.*s", STR_ARG(buf_str(&list)));
}

void node_only_keys(const struct node *map, const char *const *known, enum problem_kind kind,
                    struct problems *p)
{
    for (size_t i = 0; map && map->kind == NODE_MAP && i < map->n; i++) {
        size_t k = 0;

        while (known[k] && !str_eq(map->items[i]->key, str_of(known[k])))
            k++;
        if (!known[k])
            report_unknown_key(map->items[i], known, kind, p);
    }
}

/* ---- Values ---- */

bool node_to_int(const struct node *n, int64_t *ret)
{
    char *end;
    long long v;

    if (n->kind != NODE_INT)
        return false;
    errno = 0;
    v = strtoll(n->text.p, &end, 10); /* the text is terminated */
    *ret = v;
    return errno == 0;
}

bool node_str(const struct node *map, const char *key, struct problems *p, struct str *ret)
{
    const struct node *n = node_given(map, key);

    if (!n)
        return true;
    if (n->kind == NODE_BOOL || n->kind == NODE_INT || n->kind == NODE_DOUBLE)
        return node_expected(n, p, "a string (put it in quotes)");
    if (n->kind != NODE_STRING || memchr(n->text.p, '\0', n->text.n))
        return node_expected(n, p, n->kind == NODE_STRING ? "a string without NUL characters" : "a string");
    *ret = n->text;
    return true;
}

char *node_text(const struct node *map, const char *key, struct problems *p, struct arena *a)
{
    struct str s = {0};

    return node_str(map, key, p, &s) && s.n ? arena_text(a, s) : NULL;
}

unsigned node_choice(const struct node *map, const char *key, struct problems *p, const char *const *words)
{
    struct str s = {0};
    BUF_AUTO(list, 256);

    if (!node_str(map, key, p, &s) || s.n == 0)
        return 0;
    for (unsigned i = 0; words[i]; i++)
        if (str_eq_nocase(s, str_of(words[i])))
            return i;
    problem_choices(words, &list);
    node_expected(node_get(map, key), p, "%.*s", STR_ARG(buf_str(&list)));
    return 0;
}

const struct node *node_object(const struct node *map, const char *key, const char *const *known,
                               struct problems *p)
{
    const struct node *n = node_given(map, key);

    if (n && n->kind != NODE_MAP) {
        node_expected(n, p, "an object");
        return NULL;
    }
    if (n && known)
        node_only_keys(n, known, PROBLEM_ERROR, p);
    return n;
}

bool node_bool(const struct node *map, const char *key, struct problems *p, bool *ret)
{
    const struct node *n = node_given(map, key);

    if (n && n->kind != NODE_BOOL)
        return node_expected(n, p, "true or false");
    if (n)
        *ret = n->text.p[0] == 't' || n->text.p[0] == 'T';
    return true;
}

bool node_int(const struct node *map, const char *key, struct problems *p, int64_t min, int64_t max,
              int64_t *ret)
{
    const struct node *n = node_given(map, key);
    int64_t v;

    if (n && (!node_to_int(n, &v) || v < min || v > max))
        return node_expected(n, p, "a whole number from %" PRId64 " to %" PRId64, min, max);
    if (n)
        *ret = v;
    return true;
}

/* ---- Sizes and durations with units ---- */

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
    struct str digits = {s->p, 0};

    while (digits.n < s->n && isdigit((unsigned char)s->p[digits.n]))
        digits.n++;
    *s = (struct str){s->p + digits.n, s->n - digits.n};
    return str_to_u64(digits, ret) && *ret < UINT64_MAX;
}

static bool parse_size(const struct node *n, uint64_t *ret)
{
    struct str s = n->text;
    uint64_t v;

    if ((n->kind != NODE_INT && n->kind != NODE_STRING) || !take_digits(&s, &v))
        return false;
    *ret = v;
    if (n->kind == NODE_INT)
        return s.n == 0;
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
    return node_expected(n, p, "a size from %s to %s (a number of bytes, or like 64MiB)", low, high);
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
    return node_expected(n, p, "a duration from %s to %s (a number of seconds, or like 30s, 5m, 1h30m)", low,
                         high);
}
