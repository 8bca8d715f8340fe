#include "controller/assist/state/lister.h"

#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/escape.h"

/* Pages grow until they have some WANTED_BYTES: reading one then holds the loop for about 10 ms. */
enum {
    FIRST_PAGE = 20,
    LARGEST_PAGE = 2000,
    WANTED_BYTES = 1 << 20,
    PAGE_MAX_BYTES = 16 << 20,
    LIST_MAX_BYTES = 512 << 20,
    LIST_MAX_OBJECTS = 400 * 1000,
    LIST_MAX_PAGES = 5000,
    QUERY_BYTES = 64 << 10,
};

struct lister {
    struct lister_options o;
    struct kube_call *call;
    char *next; /* continue token of the page that is asked for; NULL: the first */
    size_t page, n_pages, n_objects, n_bytes;
};

struct lister *lister_free(struct lister *l)
{
    if (!l)
        return NULL;
    (void)kube_cancel(l->call);
    free(l->next);
    free(l);
    return NULL;
}

static void lister_on_page(void *arg, struct kube_answer *a);

static int lister_ask(struct lister *l)
{
    BUF_AUTO(query, QUERY_BYTES);
    struct kube_request rq = {.method = KUBE_LIST,
                              .resource = l->o.resource,
                              .namespace = l->o.namespace,
                              .label_selector = l->o.label_selector,
                              .field_selector = l->o.field_selector,
                              .max_answer = PAGE_MAX_BYTES};
    int r = buf_printf(&query, "limit=%zu", l->page);

    if (r == 0 && l->next)
        r = buf_puts(&query, "&continue=") ?: buf_put_url(&query, str_of(l->next));
    r = r ?: buf_putc(&query, '\0');
    rq.query = query.p;
    if (r < 0)
        return r;
    l->call = kube_start(l->o.kube, &rq, lister_on_page, l);
    return 0;
}

/* NULL, or which ceiling the page exceeds. */
static const char *lister_exceeded(struct lister *l, const struct kube_answer *a, const char *next)
{
    l->n_bytes += a->bytes;
    l->n_objects += json_array_size(kube_list(a->object, "items", NULL));
    if (++l->n_pages > LIST_MAX_PAGES)
        return "the list has more than 5,000 pages";
    if (l->n_objects > LIST_MAX_OBJECTS)
        return "the list has more than 400,000 objects";
    if (l->n_bytes > LIST_MAX_BYTES)
        return "the list exceeds 512 MiB";
    if (next && l->next && strcmp(next, l->next) == 0)
        return "the API server repeats a continue token";
    return NULL;
}

static void lister_take(struct lister *l, const struct kube_answer *a, const char *next)
{
    json_t *object;
    size_t i;

    json_array_foreach(kube_list(a->object, "items", NULL), i, object)
    {
        l->o.on_object(l->o.arg, object);
    }
    free(l->next);
    l->next = next ? xstrdup(next) : NULL;
    if (a->bytes < WANTED_BYTES / 4)
        l->page = size_min(l->page * 4, LARGEST_PAGE);
    else if (a->bytes > WANTED_BYTES * 2)
        l->page = size_max(l->page / 2, 1);
}

static void lister_on_page(void *arg, struct kube_answer *a)
{
    struct lister *l = arg;
    const char *next = kube_str(a->object, "metadata", "continue", NULL), *exceeded = NULL;

    l->call = NULL;
    next = next && *next ? next : NULL;
    if (a->verdict == KUBE_TOO_LARGE && l->page > 1)
        l->page /= 2;
    else if (a->verdict == KUBE_OK && !(exceeded = lister_exceeded(l, a, next)))
        lister_take(l, a, next);
    else {
        l->o.done(l->o.arg, exceeded ? KUBE_TOO_LARGE : a->verdict, exceeded ? exceeded : a->why);
        return;
    }
    if (a->verdict == KUBE_OK && (!next || l->o.first_only))
        l->o.done(l->o.arg, KUBE_OK, "");
    else if (lister_ask(l) < 0)
        l->o.done(l->o.arg, KUBE_RETRY, "the next page cannot be requested");
}

int lister_start(struct lister **ret, const struct lister_options *o)
{
    CLEANUP(cleanup_lister_free) struct lister *l = xcalloc(1, sizeof(*l));
    int r;

    l->o = *o;
    l->page = o->first_only ? 1 : FIRST_PAGE;
    r = lister_ask(l);
    if (r == 0)
        *ret = TAKE_PTR(l);
    return r;
}
