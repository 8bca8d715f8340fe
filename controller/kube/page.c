/* Owns the position in the text, and the tree of the head or of one item. The text is its caller's.
 *
 * The items are skipped once while the text is checked, since an API server writes the version of a list of
 * custom resources behind them, and once more when each becomes a tree. Skipping is twenty times as fast as
 * making a tree. */
#include "controller/kube/page.h"

#include "exporter/base/buf.h"
#include "exporter/base/invariant.h"
#include "exporter/base/json.h"

#include <stdio.h>

/* What the owner does with an item, such as to compare it with what it knows. */
enum { ITEM_COST = 1 << 10 };

void kube_page_done(struct kube_page *p)
{
    kube_tree_done(&p->tree);
    buf_done(&p->head);
    *p = (struct kube_page){0};
}

static void page_begin(struct kube_page *p, struct str text, struct kube_cut *cut)
{
    kube_page_done(p);
    p->text = text;
    p->cut = cut;
    buf_init(&p->head, SIZE_MAX / 2);
}

void kube_page_begin_list(struct kube_page *p, struct str text, struct kube_cut *cut)
{
    page_begin(p, text, cut);
    jr_init(&p->in, text, JR_DEEP);
    if (jr_peek(&p->in) == JR_ARRAY) { /* JSON, but no list of Kubernetes */
        kube_page_begin_object(p, text, NULL);
        return;
    }
    p->state = KUBE_PAGE_CHECK;
    (void)jr_object(&p->in);
}

void kube_page_begin_object(struct kube_page *p, struct str text, struct kube_cut *cut)
{
    page_begin(p, text, cut);
    p->state = KUBE_PAGE_HEAD;
    kube_tree_begin(&p->tree, text, cut);
}

/* ---- The check ---- */

/* Parsers differ in which of two they take. */
static void page_check_items(struct kube_page *p)
{
    if (p->saw_items) {
        (void)jr_fail(&p->in, "items twice");
        return;
    }
    p->saw_items = true;
    if (jr_peek(&p->in) != JR_ARRAY) {
        (void)jr_skip(&p->in, NULL);
        return;
    }
    p->has_items = p->is_in_items = true;
    p->items_at = (size_t)(p->in.p - p->text.p);
    (void)jr_array(&p->in);
}

static void page_check_item(struct kube_page *p)
{
    if (jr_item(&p->in)) {
        (void)jr_skip(&p->in, NULL);
        return;
    }
    p->is_in_items = false;
    p->items_n = (size_t)(p->in.p - p->text.p) - p->items_at;
}

/* Puts the document without its items together. */
static void page_begin_head(struct kube_page *p)
{
    size_t items_end = p->items_at + p->items_n;
    struct str before = {p->text.p, p->items_at}, after = {p->text.p + items_end, p->text.n - items_end};

    p->state = KUBE_PAGE_HEAD;
    if (!p->has_items) {
        kube_tree_begin(&p->tree, p->text, NULL);
        return;
    }
    buf_put_str(&p->head, before);
    buf_puts(&p->head, "[]");
    buf_put_str(&p->head, after);
    if (buf_failed(&p->head) < 0) {
        (void)jr_fail(&p->in, "out of memory");
        return;
    }
    kube_tree_begin(&p->tree, buf_str(&p->head), NULL);
}

static void page_check_member(struct kube_page *p)
{
    struct str name;

    if (!jr_member(&p->in, &name)) {
        if (jr_end(&p->in))
            page_begin_head(p);
    } else if (jr_key_is(name, "items")) {
        page_check_items(p);
    } else {
        (void)jr_skip(&p->in, NULL);
    }
}

static size_t page_check(struct kube_page *p, size_t most)
{
    const char *begin = p->in.p;
    size_t cost = 0;

    while (p->state == KUBE_PAGE_CHECK && !p->in.error && cost < most) {
        if (p->is_in_items)
            page_check_item(p);
        else
            page_check_member(p);
        cost = (size_t)(p->in.p - begin);
    }
    if (p->in.error)
        p->state = KUBE_PAGE_FAILED;
    return cost;
}

/* ---- The head and the items ---- */

static size_t page_begin_item(struct kube_page *p)
{
    struct str item;

    if (!jr_item(&p->in)) {
        invariant(!p->in.error); /* it was checked */
        p->state = KUBE_PAGE_END;
        return 0;
    }
    (void)jr_skip(&p->in, &item);
    invariant(!p->in.error);
    kube_tree_begin(&p->tree, item, p->cut);
    p->has_item = true;
    p->item++;
    return item.n;
}

static void page_begin_items(struct kube_page *p)
{
    if (!p->has_items) {
        p->state = KUBE_PAGE_END;
        return;
    }
    p->state = KUBE_PAGE_ITEMS;
    jr_init(&p->in, (struct str){p->text.p + p->items_at, p->items_n}, JR_DEEP);
    (void)jr_array(&p->in);
}

/* What comes of the tree's next step. */
static enum kube_page_event page_grow(struct kube_page *p, size_t most, size_t *cost, json_t **ret)
{
    *cost += kube_tree_step(&p->tree, most);
    switch (p->tree.state) {
    case KUBE_TREE_MORE:
        return KUBE_PAGE_GOT_NONE;
    case KUBE_TREE_FAILED:
        p->state = KUBE_PAGE_FAILED;
        return KUBE_PAGE_GOT_ERROR;
    case KUBE_TREE_DONE:
        break;
    }
    *ret = kube_tree_take(&p->tree);
    if (p->state == KUBE_PAGE_HEAD) {
        page_begin_items(p);
        return KUBE_PAGE_GOT_HEAD;
    }
    p->has_item = false;
    *cost += ITEM_COST;
    return KUBE_PAGE_GOT_ITEM;
}

enum kube_page_event kube_page_step(struct kube_page *p, size_t most, size_t *ret_cost, json_t **ret)
{
    *ret_cost = 0;
    switch (p->state) {
    case KUBE_PAGE_CHECK:
        *ret_cost = page_check(p, most);
        return p->state == KUBE_PAGE_FAILED ? KUBE_PAGE_GOT_ERROR : KUBE_PAGE_GOT_NONE;
    case KUBE_PAGE_HEAD:
        return page_grow(p, most, ret_cost, ret);
    case KUBE_PAGE_ITEMS:
        if (!p->has_item)
            *ret_cost = page_begin_item(p);
        if (p->state == KUBE_PAGE_END)
            return KUBE_PAGE_GOT_END;
        return page_grow(p, most, ret_cost, ret);
    case KUBE_PAGE_END:
        return KUBE_PAGE_GOT_END;
    case KUBE_PAGE_FAILED:
        break;
    }
    return KUBE_PAGE_GOT_ERROR;
}

void kube_page_explain(const struct kube_page *p, char why[256])
{
    char tree_why[256];
    unsigned line, column;

    invariant(p->state == KUBE_PAGE_FAILED);
    if (p->has_item) { /* what the check does not see: its size, and numbers that fit no type */
        kube_tree_explain(&p->tree, tree_why);
        (void)snprintf(why, 256, "a list whose item %zu is %.128s", p->item, tree_why);
        return;
    }
    if (!p->in.error) {
        kube_tree_explain(&p->tree, why);
        return;
    }
    jr_position(p->text, p->in.error_at, &line, &column);
    (void)snprintf(why, 256, "not JSON at line %u, column %u", line, column);
}
