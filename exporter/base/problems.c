#include "exporter/base/problems.h"

#include "exporter/base/secret.h"
#include "exporter/base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

enum { QUOTE_MAX = 80, READ_MAX = 64 << 10 };

void problems_init(struct problems *p, const char *file)
{
    *p = (struct problems){.file = xstrdup(file)};
}

void problems_done(struct problems *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->list[i].text);
    free(p->list);
    free(p->file);
    *p = (struct problems){0};
}

/* The list stores no capacity: it doubles whenever its length is a power of two. */
static void problems_grow(struct problems *p)
{
    if ((p->n & (p->n - 1)) == 0)
        p->list = xrealloc(p->list, (p->n ? 2 * p->n : 1) * sizeof(*p->list));
}

/* Counts a problem; true when the list has room for its text. */
static bool count_problem(struct problems *p, enum problem_kind kind)
{
    if (kind == PROBLEM_ERROR)
        p->errors++;
    if (p->n == PROBLEMS_MAX)
        p->left_out++;
    return p->n < PROBLEMS_MAX;
}

/* Takes ownership of text, which starts with a path of path_n bytes. */
static void push_problem(struct problems *p, const struct problem *at, char *text, size_t path_n)
{
    struct problem *x;
    size_t skip = path_n ? path_n + strlen(": ") : 0;

    problems_grow(p);
    x = &p->list[p->n++];
    *x = *at;
    x->text = text;
    x->path = (struct str){text, path_n};
    x->message = str_of(text + skip);
}

void problems_add(struct problems *p, enum problem_kind kind, unsigned line, unsigned column, const char *fmt,
                  ...)
{
    va_list ap;
    char *text;

    if (!count_problem(p, kind))
        return;
    va_start(ap, fmt);
    text = xvasprintf(fmt, ap);
    va_end(ap);
    push_problem(p, &(struct problem){.kind = kind, .line = line, .column = column}, text, 0);
}

void problems_add_field(struct problems *p, const struct problem *at, struct str path, struct str message)
{
    if (!count_problem(p, at->kind))
        return;
    push_problem(p, at, xasprintf("%.*s%s%.*s", STR_ARG(path), path.n ? ": " : "", STR_ARG(message)), path.n);
}

static int compare_problems(const void *pa, const void *pb)
{
    const struct problem *a = pa, *b = pb;

    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    if (a->column != b->column)
        return a->column < b->column ? -1 : 1;
    if (a->kind != b->kind)
        return a->kind < b->kind ? -1 : 1;
    return strcmp(a->text, b->text);
}

void problems_sort(struct problems *p)
{
    if (p->n > 1)
        qsort(p->list, p->n, sizeof(p->list[0]), compare_problems);
}

int problems_print(const struct problems *p, struct buf *into)
{
    static const char *const words[] = {[PROBLEM_ERROR] = "error", [PROBLEM_WARNING] = "warning"};
    size_t mark = into->n;
    int r = 0;

    for (size_t i = 0; i < p->n && r == 0; i++) {
        const struct problem *x = &p->list[i];

        if (x->line)
            r = buf_printf(into, "%s:%u:%u: %s: %s\n", p->file, x->line, x->column, words[x->kind], x->text);
        else
            r = buf_printf(into, "%s: %s: %s\n", p->file, words[x->kind], x->text);
    }
    if (r == 0 && p->left_out)
        r = buf_printf(into, "%s: %zu more problems are not shown\n", p->file, p->left_out);
    if (r < 0)
        buf_truncate(into, mark);
    return r;
}

static int problem_put_escaped(struct str text, struct buf *into)
{
    for (size_t i = 0; i < text.n;) {
        size_t n = utf8_char((struct str){text.p + i, text.n - i});
        unsigned char c = (unsigned char)text.p[i];
        int r;

        if (n == 0 || c < 0x20 || c == 0x7f)
            r = buf_printf(into, "\\x%02x", c);
        else
            r = buf_put(into, text.p + i, n);
        if (r < 0)
            return r;
        i += n ? n : 1;
    }
    return 0;
}

/* Splits the text into a scheme and the rest after the last `@`. Anything before the `@` may be a password,
 * even in a malformed URL. */
static void split_credentials(struct str text, struct str *scheme, struct str *rest)
{
    const char *slashes = memmem(text.p, text.n, "://", 3);
    const char *at = memrchr(text.p, '@', text.n);
    const char *query;

    *scheme = (struct str){text.p, slashes && at && at > slashes ? (size_t)(slashes + 3 - text.p) : 0};
    *rest = at ? (struct str){at + 1, (size_t)(text.p + text.n - at - 1)} : text;
    query = slashes ? memchr(rest->p, '?', rest->n) : NULL;
    if (query)
        rest->n = (size_t)(query - rest->p);
}

int problem_choices(const char *const *words, struct buf *into)
{
    int r = 0;

    for (size_t i = 0; words[i] && r == 0; i++)
        r = buf_printf(into, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
    return r;
}

int problem_quote(struct str given, struct buf *into)
{
    BUF_AUTO(copy, READ_MAX);
    struct str scheme, rest, shown, text = STR("");
    size_t mark = into->n;
    int r = buf_put(&copy, given.p, size_min(given.n, READ_MAX));

    if (r < 0)
        return r;
    if (copy.n) /* before it is cut: half of a secret would not be found */
        text = (struct str){copy.p, secret_hide(copy.p, copy.n)};
    split_credentials(text, &scheme, &rest);
    shown = utf8_valid_prefix(rest) == rest.n ? utf8_cut(rest, QUOTE_MAX)
                                              : (struct str){rest.p, size_min(rest.n, QUOTE_MAX)};
    r = buf_putc(into, '"');
    if (r == 0 && rest.p != text.p)
        r = problem_put_escaped(scheme, into) ?: buf_puts(into, "***@");
    r = r ?: problem_put_escaped(shown, into);
    if (r == 0 && rest.p + shown.n < text.p + text.n)
        r = buf_puts(into, "...");
    r = r ?: buf_putc(into, '"');
    if (r < 0)
        buf_truncate(into, mark);
    return r;
}

struct log_field problems_origin(const struct problems *p)
{
    static const char configmap[] = "configmap ";
    bool is_configmap = strncmp(p->file, configmap, sizeof(configmap) - 1) == 0;

    return is_configmap ? (struct log_field)L_STR("configmap", p->file + sizeof(configmap) - 1)
                        : (struct log_field)L_STR("file", p->file);
}

void problems_log(const struct problems *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct problem *x = &p->list[i];
        enum log_level level = x->kind == PROBLEM_ERROR ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN;
        const char *what = x->kind == PROBLEM_ERROR ? "configuration error" : "configuration warning";

        if (x->line)
            LOG_AT(level, what, problems_origin(p), L_INT("line", x->line), L_INT("column", x->column),
                   L_STR("err", x->text));
        else
            LOG_AT(level, what, problems_origin(p), L_STR("err", x->text));
    }
}
