/* Pages of Kubernetes lists. Read in steps of any size, a document gives the tree that jansson makes of it,
 * and a page its members and then its items, in their order. */
#include "controller/kube/json.h"
#include "controller/kube/page.h"
#include "controller/kube/tree.h"
#include "exporter/base/hash.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LONGEST_STEP = 200 };

/* Whether the text may have a lone surrogate, which jansson refuses. */
static bool may_have_surrogate(struct str text)
{
    for (size_t i = 0; i + 3 < text.n; i++)
        if (memcmp(text.p + i, "\\u", 2) == 0 && (text.p[i + 2] | 0x20) == 'd')
            return true;
    return false;
}

/* The tree, read in steps; NULL if it is refused. */
static json_t *read_tree(struct str text, size_t step)
{
    struct kube_tree t = {0};
    json_t *tree = NULL;
    char why[256];

    kube_tree_begin(&t, text, NULL);
    while (t.state == KUBE_TREE_MORE)
        assert(kube_tree_step(&t, step) > 0);
    assert(kube_tree_step(&t, step) == 0);
    if (t.state == KUBE_TREE_DONE)
        tree = kube_tree_take(&t);
    else
        kube_tree_explain(&t, why);
    kube_tree_done(&t);
    return tree;
}

/* The document put together again; NULL if it is refused. */
static json_t *read_page(struct str text, size_t step)
{
    struct kube_page p = {0};
    enum kube_page_event event = KUBE_PAGE_GOT_NONE;
    json_t *head = NULL, *value = NULL;
    size_t cost;
    char why[256];

    kube_page_begin_list(&p, text, NULL);
    while (event < KUBE_PAGE_GOT_END) {
        event = kube_page_step(&p, step, &cost, &value);
        if (event == KUBE_PAGE_GOT_HEAD) {
            assert(!head);
            head = value;
        } else if (event == KUBE_PAGE_GOT_ITEM) {
            assert(json_array_append_new(json_object_get(head, "items"), value) == 0);
        }
    }
    if (event == KUBE_PAGE_GOT_ERROR) {
        kube_page_explain(&p, why);
        json_decref(head);
        head = NULL;
    }
    assert(event == KUBE_PAGE_GOT_ERROR || head);
    kube_page_done(&p);
    return head;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    size_t step = 1 + hash_lasting(text) % LONGEST_STEP;
    bool has_nul = memchr(data, '\0', size) != NULL;
    json_auto_t *wanted = NULL, *tree = read_tree(text, step), *page = read_page(text, step);

    if (kube_json_parse(&wanted, text, NULL) < 0)
        assert(!wanted);
    /* jansson takes a NUL after a number for its end, which no JSON is. */
    assert(!wanted || (tree && json_equal(wanted, tree)) || (!tree && has_nul));
    assert(wanted || !tree || may_have_surrogate(text));
    /* Of two lists of items a page refuses to choose. */
    assert(!page || (tree && json_equal(page, tree)));
    return 0;
}
