#include "exporter/ui/list.h"

#include "exporter/ui/out.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdio.h>

enum { TOKEN_BYTES = 64 << 10, LIST_FIRST_CAP = 32 };

/* ---- Tokens: "v1 RANK NAME" in hexadecimal, so that no one builds on what is in them ---- */

static void token_put(struct out *o, const struct list_item *last)
{
    CLEANUP(cleanup_free) char *text = xasprintf("v1 %u %s", last->rank, last->name);

    out_puts(o, "\"");
    for (const char *p = text; *p; p++)
        out_printf(o, "%02x", (unsigned char)*p);
    out_puts(o, "\"");
}

static int token_read(struct list_query *q, const char *token)
{
    size_t n = strlen(token), bytes = n / 2;
    CLEANUP(cleanup_free) char *text = xcalloc(1, bytes + 1);
    int name_at = 0;

    if (n == 0 || n % 2 || n > TOKEN_BYTES || gnutls_hex2bin(token, n, text, &bytes) < 0 ||
        strlen(text) != n / 2)
        return -EINVAL;
    if (sscanf(text, "v1 %4u%n", &q->after_rank, &name_at) != 1 || text[name_at] != ' ')
        return -EINVAL;
    q->after = xstrdup(text + name_at + 1);
    return 0;
}

/* ---- Queries ---- */

static bool limit_read(const char *text, size_t *ret)
{
    size_t n = strspn(text, "0123456789");

    if (n == 0 || n > 9 || text[n])
        return false;
    *ret = strtoul(text, NULL, 10);
    if (*ret == 0)
        *ret = SIZE_MAX;
    return true;
}

int list_query_parse(struct list_query *ret, const struct list_parameters *p, const char **ret_why)
{
    struct list_query q = {.limit = LIST_DEFAULT_LIMIT, .filter = cstr(p->filter), .state = cstr(p->state)};
    int r;

    if (p->limit && !limit_read(p->limit, &q.limit)) {
        *ret_why = "invalid parameter limit: must be a whole number, 0 for all";
        return -EINVAL;
    }
    if (p->sort && strcmp(p->sort, "name") != 0 && strcmp(p->sort, "state") != 0) {
        *ret_why = "invalid parameter sort: must be name or state";
        return -EINVAL;
    }
    if (p->history && strcmp(p->history, "true") != 0 && strcmp(p->history, "false") != 0) {
        *ret_why = "invalid parameter history: must be true or false";
        return -EINVAL;
    }
    q.worst_first = p->sort && strcmp(p->sort, "state") == 0;
    q.with_history = p->history && strcmp(p->history, "true") == 0;
    r = p->from && *p->from ? token_read(&q, p->from) : 0;
    if (r < 0) {
        *ret_why = "invalid parameter continue: not a token of this API; start again without it";
        return r;
    }
    *ret = q;
    return 0;
}

int list_query_read(struct list_query *ret, const struct httpd_request *rq, const char **ret_why)
{
    const struct list_parameters p = {
        .limit = httpd_query(rq, "limit"),
        .from = httpd_query(rq, "continue"),
        .filter = httpd_query(rq, "filter"),
        .state = httpd_query(rq, "state"),
        .sort = httpd_query(rq, "sort"),
        .history = httpd_query(rq, "history"),
    };

    return list_query_parse(ret, &p, ret_why);
}

void list_query_done(struct list_query *q)
{
    free(q->after);
    q->after = NULL;
}

bool list_matches(const struct list_query *q, const char *name, const char *other)
{
    return !*q->filter || strcasestr(cstr(name), q->filter) || strcasestr(cstr(other), q->filter);
}

bool list_has_state(const struct list_query *q, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = q->state; *p; p += strspn(p, ",")) {
        size_t length = strcspn(p, ",");

        if (length == n && strncmp(p, word, n) == 0)
            return true;
        p += length;
    }
    return !*q->state;
}

/* ---- Lists ---- */

static int item_compare(const void *a, const void *b, void *list)
{
    const struct list_item *x = a, *y = b;

    if (((struct list *)list)->query->worst_first && x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return strcmp(x->name, y->name);
}

void list_add(struct list *l, const char *name, unsigned rank, const void *what)
{
    const struct list_query *q = l->query;
    const struct list_item after = {.name = q->after, .rank = q->after_rank}, item = {name, what, rank};

    if (q->after && item_compare(&item, &after, l) <= 0)
        return;
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : LIST_FIRST_CAP;
        l->items = xreallocarray(l->items, l->cap, sizeof(*l->items));
    }
    l->items[l->n++] = item;
}

void list_sort(struct list *l)
{
    if (l->n)
        qsort_r(l->items, l->n, sizeof(*l->items), item_compare, l);
    if (l->n > l->query->limit) {
        l->behind = l->n - l->query->limit;
        l->n = l->query->limit;
    }
}

void list_done(struct list *l)
{
    free(l->items);
    *l = (struct list){0};
}

void list_metadata(struct out *o, const char *key, const struct list *l)
{
    member_object(o, key);
    member(o, "continue");
    if (l->behind)
        token_put(o, &l->items[l->n - 1]);
    else
        out_puts(o, "null");
    member_count(o, "remainingItemCount", l->behind);
    out_puts(o, "}");
}
