/* Reads a document's tree: members, typed values, and problems with the path of their node. */
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/problems.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { MESSAGE_MAX = 64 * 1024, SHOWN_MAX = 80, KEY_MAX = 48 };

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

bool node_to_int(const struct node *n, int64_t *ret)
{
    struct str s = n->text;
    bool negative = s.n && s.p[0] == '-';
    int64_t v = 0;

    if (n->kind != NODE_INT)
        return false;
    for (size_t i = negative || s.p[0] == '+' ? 1 : 0; i < s.n; i++) {
        int digit = s.p[i] - '0';

        if (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, digit, &v))
            return false;
    }
    /* v is negative, as INT64_MIN has no positive counterpart. */
    return negative ? (*ret = v, true) : !__builtin_sub_overflow(0, v, ret);
}

static bool is_plain_key(struct str key)
{
    return key.n > 0 && key.n <= SHOWN_MAX && str_has_only(key, "_-");
}

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

static int node_put_step(const struct node *n, struct buf *into, bool first)
{
    if (n->parent->kind == NODE_LIST)
        return buf_printf(into, "[%zu]", n->index);
    if (is_secret_key(n))
        return buf_puts(into, "[...]");
    if (is_plain_key(n->key))
        return buf_printf(into, "%s%.*s", first ? "" : ".", STR_ARG(n->key));
    return buf_puts(into, "[") ?: problem_quote(n->key, into) ?: buf_puts(into, "]");
}

int node_path(const struct node *n, struct buf *into)
{
    const struct node *steps[DOC_MAX_DEPTH + 1];
    size_t depth = 0, mark = into->n;
    int r = 0;

    for (; n->parent && depth < ARRAY_SIZE(steps); n = n->parent)
        steps[depth++] = n;
    for (size_t i = depth; i > 0 && r == 0; i--)
        r = node_put_step(steps[i - 1], into, i == depth);
    if (r < 0)
        buf_truncate(into, mark);
    return r;
}

/* `text` holds a path of path_n bytes followed by the message; r is the error of filling it, or 0. */
static void node_add_problem(struct problems *p, const struct problem *at, int r, const struct buf *text,
                             size_t path_n)
{
    static const char no_memory[] = "out of memory while describing the problem";

    if (r == 0)
        problems_add_field(p, at, (struct str){text->p, path_n},
                           (struct str){text->p + path_n, text->n - path_n});
    else
        problems_add_field(p, at, STR(""), str_of(no_memory));
    if (r < 0)
        p->out_of_memory = true;
}

static void node_vproblem(const struct node *n, struct problems *p, const struct problem *at, const char *fmt,
                          va_list ap)
{
    BUF_AUTO(text, MESSAGE_MAX);
    int r = node_path(n, &text);
    size_t path_n = text.n;

    r = r ?: buf_vprintf(&text, fmt, ap);
    node_add_problem(p, at, r, &text, path_n);
}

void node_problem(const struct node *n, struct problems *p, enum problem_kind kind, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    node_vproblem(n, p, &(struct problem){.kind = kind, .line = n->line, .column = n->column}, fmt, ap);
    va_end(ap);
}

void node_key_problem(const struct node *n, struct problems *p, enum problem_kind kind, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    node_vproblem(n, p, &(struct problem){.kind = kind, .line = n->key_line, .column = n->key_column}, fmt,
                  ap);
    va_end(ap);
}

/* A root scalar is not shown: the file is not a configuration then, and may be a secret. */
static int node_put_value(const struct node *n, struct buf *into)
{
    if (is_secret_node(n) && n->kind != NODE_LIST && n->kind != NODE_MAP && n->kind != NODE_NULL)
        return buf_puts(into, "a value");
    switch (n->kind) {
    case NODE_LIST:
        return buf_puts(into, "a list");
    case NODE_MAP:
        return buf_puts(into, "an object");
    case NODE_NULL:
        return buf_puts(into, n->parent ? "null" : "nothing");
    case NODE_STRING:
        if (!n->parent)
            return buf_puts(into, "a string");
        if (n->text.n == 0)
            return buf_puts(into, "an empty string");
        return buf_puts(into, "the string ") ?: problem_quote(n->text, into);
    default:
        return n->parent ? buf_printf(into, "%.*s", (int)size_min(n->text.n, SHOWN_MAX), n->text.p)
                         : buf_puts(into, "a single value");
    }
}

void node_expected(const struct node *n, struct problems *p, const char *fmt, ...)
{
    BUF_AUTO(text, MESSAGE_MAX);
    size_t path_n;
    va_list ap;
    int r;

    if (n->kind == NODE_BROKEN)
        return;
    r = node_path(n, &text);
    path_n = text.n;
    va_start(ap, fmt);
    r = r ?: buf_puts(&text, "expected ") ?: buf_vprintf(&text, fmt, ap);
    va_end(ap);
    r = r ?: buf_puts(&text, ", got ") ?: node_put_value(n, &text);
    node_add_problem(p, &(struct problem){.kind = PROBLEM_ERROR, .line = n->line, .column = n->column}, r,
                     &text, path_n);
}

void node_missing(const struct node *map, const char *key, struct problems *p, const char *what)
{
    struct problem at = {.kind = PROBLEM_ERROR, .missing = true, .line = map->line, .column = map->column};
    BUF_AUTO(text, MESSAGE_MAX);
    int r = node_path(map, &text);
    size_t path_n;

    r = r ?: buf_printf(&text, "%s%s", map->parent ? "." : "", key);
    path_n = text.n;
    r = r ?: buf_printf(&text, "missing, expected %s", what);
    node_add_problem(p, &at, r, &text, path_n);
}

bool node_str(const struct node *map, const char *key, struct problems *p, struct str *ret)
{
    const struct node *n = node_given(map, key);

    if (!n)
        return true;
    if (n->kind == NODE_STRING && !memchr(n->text.p, '\0', n->text.n)) {
        *ret = n->text;
        return true;
    }
    if (n->kind == NODE_BOOL || n->kind == NODE_INT || n->kind == NODE_DOUBLE)
        node_expected(n, p, "a string (put it in quotes)");
    else
        node_expected(n, p, n->kind == NODE_STRING ? "a string without NUL characters" : "a string");
    return false;
}

bool node_bool(const struct node *map, const char *key, struct problems *p, bool *ret)
{
    const struct node *n = node_given(map, key);

    if (!n)
        return true;
    if (n->kind == NODE_BOOL) {
        *ret = n->text.p[0] == 't' || n->text.p[0] == 'T';
        return true;
    }
    node_expected(n, p, "true or false");
    return false;
}

bool node_int(const struct node *map, const char *key, struct problems *p, int64_t min, int64_t max,
              int64_t *ret)
{
    const struct node *n = node_given(map, key);
    int64_t v;

    if (!n)
        return true;
    if (node_to_int(n, &v) && v >= min && v <= max) {
        *ret = v;
        return true;
    }
    node_expected(n, p, "a whole number from %" PRId64 " to %" PRId64, min, max);
    return false;
}
