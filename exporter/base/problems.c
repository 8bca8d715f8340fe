#include "exporter/base/problems.h"

#include "exporter/base/secret.h"
#include "exporter/base/text.h"

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

/* Takes ownership of text, which starts with a path of path_n bytes. The list doubles whenever its length is
 * a power of two. */
static void push_problem(struct problems *p, const struct problem *at, char *text, size_t path_n)
{
    struct problem *x;

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
    push_problem(p, &(struct problem){.kind = kind, .line = line, .column = column}, xvasprintf(fmt, ap), 0);
    va_end(ap);
}

void problems_add_field(struct problems *p, const struct problem *at, struct str path, struct str message)
{
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

int problem_choices(const char *const *words, struct buf *into)
{
    int r = 0;

    for (size_t i = 0; words[i] && r == 0; i++)
        r = buf_printf(into, "%s%s", i == 0 ? "" : words[i + 1] ? ", " : " or ", words[i]);
    return r;
}

static int problem_put_escaped(struct str text, struct buf *into)
{
    int r = 0;

    while (r == 0 && text.n) {
        size_t n = utf8_char(text);
        unsigned char c = (unsigned char)*text.p;

        r = n == 0 || c < 0x20 || c == 0x7f ? buf_printf(into, "\\x%02x", c) : buf_put(into, text.p, n);
        n = n ? n : 1;
        text = (struct str){text.p + n, text.n - n};
    }
    return r;
}

/* Anything before an `@` may be a password, even in a malformed URL. */
int problem_quote(struct str given, struct buf *into)
{
    CLEANUP(cleanup_free) char *copy = str_dup((struct str){given.p, size_min(given.n, READ_MAX)});
    /* Before it is cut: half of a secret would not be found. */
    struct str all = {copy, secret_hide(copy, size_min(given.n, READ_MAX))}, shown = all;
    const char *slashes = memmem(all.p, all.n, "://", 3), *at = memrchr(all.p, '@', all.n), *query;
    size_t mark = into->n;
    int r = buf_putc(into, '"');

    if (at) {
        if (slashes && slashes < at)
            r = r ?: problem_put_escaped((struct str){all.p, (size_t)(slashes + 3 - all.p)}, into);
        r = r ?: buf_puts(into, "***@");
        shown = (struct str){at + 1, (size_t)(all.p + all.n - at - 1)};
    }
    query = slashes ? memchr(shown.p, '?', shown.n) : NULL;
    shown.n = size_min(query ? (size_t)(query - shown.p) : shown.n, QUOTE_MAX);
    while (shown.n && shown.p + shown.n < all.p + all.n && ((unsigned char)shown.p[shown.n] & 0xc0) == 0x80)
        shown.n--;
    r = r ?: problem_put_escaped(shown, into);
    if (shown.p + shown.n < all.p + all.n)
        r = r ?: buf_puts(into, "...");
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
