/* What a request asks for of a list, and the part that it gets. Tokens are "v1 RANK NAME" in hexadecimal,
 * so that no one builds on what is in them. Owns the items of a list until list_done(), not what they are
 * of. */
#include "exporter/ui/list.h"

#include "exporter/base/alloc.h"
#include "exporter/ui/member.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdio.h>

enum { TOKEN_BYTES = 64 << 10 };

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

static bool limit_read(const char *text, size_t *ret)
{
    uint64_t v;

    if (!str_to_u64(str_of(text), &v) || v > 999999999)
        return false;
    *ret = v ?: SIZE_MAX;
    return true;
}

/* Reads one of two words; `no` if the parameter is absent. */
static bool word_is(const struct httpd_request *rq, const char *name, const char *no, const char *yes,
                    bool *ret)
{
    const char *text = httpd_query(rq, name);

    *ret = text && strcmp(text, yes) == 0;
    return !text || *ret || strcmp(text, no) == 0;
}

int list_query_read(struct list_query *ret, const struct httpd_request *rq, const char **ret_why)
{
    const char *limit = httpd_query(rq, "limit"), *from = cstr(httpd_query(rq, "continue"));
    struct list_query q = {.limit = LIST_DEFAULT_LIMIT,
                           .filter = cstr(httpd_query(rq, "filter")),
                           .state = cstr(httpd_query(rq, "state"))};

    if (limit && !limit_read(limit, &q.limit))
        *ret_why = "invalid parameter limit: must be a whole number, 0 for all";
    else if (!word_is(rq, "sort", "name", "state", &q.worst_first))
        *ret_why = "invalid parameter sort: must be name or state";
    else if (!word_is(rq, "history", "false", "true", &q.with_history))
        *ret_why = "invalid parameter history: must be true or false";
    else if (*from && token_read(&q, from) < 0)
        *ret_why = "invalid parameter continue: not a token of this API; start again without it";
    else {
        *ret = q;
        return 0;
    }
    return -EINVAL;
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

static int item_compare(const void *a, const void *b, void *list)
{
    const struct list_item *x = a, *y = b;

    return (((struct list *)list)->query->worst_first ? COMPARE(x->rank, y->rank) : 0)
               ?: strcmp(x->name, y->name);
}

void list_add(struct list *l, const char *name, unsigned rank, const void *what)
{
    const struct list_query *q = l->query;
    const struct list_item after = {.name = q->after, .rank = q->after_rank}, item = {name, what, rank};

    if (q->after && item_compare(&item, &after, l) <= 0)
        return;
    if ((l->n & (l->n - 1)) == 0) /* doubles whenever its length is a power of two */
        l->items = xreallocarray(l->items, size_max(2 * l->n, 1), sizeof(*l->items));
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

void list_metadata(struct buf *o, const char *key, const struct list *l)
{
    const struct list_item *last = l->behind ? &l->items[l->n - 1] : NULL;
    CLEANUP(cleanup_free) char *token = last ? xasprintf("v1 %u %s", last->rank, last->name) : NULL;

    member_object(o, key);
    member(o, "continue");
    buf_puts(o, token ? "\"" : "null");
    for (const char *p = token; p && *p; p++)
        buf_printf(o, "%02x", (unsigned char)*p);
    buf_puts(o, token ? "\"" : "");
    member_count(o, "remainingItemCount", l->behind);
    buf_puts(o, "}");
}
