/* Reads a page of a Kubernetes list in steps: first it checks the whole text, so that nothing is taken
 * from a page that is damaged, then come the list's own members, and then its items, each as a tree of its
 * own. So neither time nor memory grows with the page. Belongs to the loop's thread. */
#pragma once

#include "controller/kube/tree.h"

enum kube_page_state {
    KUBE_PAGE_CHECK, /* the whole text */
    KUBE_PAGE_HEAD,  /* the document without its items */
    KUBE_PAGE_ITEMS,
    KUBE_PAGE_END,
    KUBE_PAGE_FAILED,
};

struct kube_page {
    enum kube_page_state state;
    struct str text;
    struct kube_cut *cut; /* of items */
    struct jr in;
    bool saw_items, has_items; /* a member of that name, and whether it is an array */
    bool is_in_items;          /* the check is */
    bool has_item;             /* `tree` is one that has begun */
    size_t items_at, items_n;  /* of the array, with its brackets */
    size_t item;               /* the number of the one that `tree` is, from 1 */
    struct buf head;
    struct kube_tree tree;
};

/* Before first use: zeroed. */
void kube_page_done(struct kube_page *p);
/* Of a list, or of a single object, which is its own head and has no items. The text must stay until the
 * end. cut: NULL for none. */
void kube_page_begin_list(struct kube_page *p, struct str text, struct kube_cut *cut);
void kube_page_begin_object(struct kube_page *p, struct str text, struct kube_cut *cut);

enum kube_page_event {
    KUBE_PAGE_GOT_NONE, /* there is more: call it again */
    KUBE_PAGE_GOT_HEAD, /* once: all but the items, in whose place is an empty array */
    KUBE_PAGE_GOT_ITEM,
    KUBE_PAGE_GOT_END,
    KUBE_PAGE_GOT_ERROR, /* kube_page_explain() */
};

/* Goes on until there is an event or it has cost about `most`, in the unit of loop_spend(); *ret_cost is
 * what it did cost. *ret is the head or the item, a new reference. */
enum kube_page_event kube_page_step(struct kube_page *p, size_t most, size_t *ret_cost, json_t **ret);
/* What the text is: "not JSON at line 1, column 7", or "a list whose item 3 is larger than 4 MiB". */
void kube_page_explain(const struct kube_page *p, char why[256]);
