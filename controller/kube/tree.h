/* Builds a jansson tree of a JSON document in steps, each of which costs about as much as it is told, so
 * that a peer's document of any size holds up no turn of the loop. Belongs to the loop's thread.
 *
 * It accepts what kube_json_parse() accepts, other than a NUL after a number, and lone surrogates, which
 * become U+FFFD. One string is read in one step, and one tree is freed in one: hence the ceiling. */
#pragma once

#include "controller/kube/json.h"
#include "exporter/base/json.h"

/* The largest document. An API server accepts objects of 3 MiB. */
enum { KUBE_TREE_MAX_BYTES = 4 << 20 };

enum kube_tree_state {
    KUBE_TREE_MORE,
    KUBE_TREE_DONE,
    KUBE_TREE_FAILED, /* the text is too long, is not JSON, or does not begin with an object or an array */
};

struct kube_tree {
    enum kube_tree_state state;
    bool is_too_large;
    struct jr in;
    struct buf less, plain; /* the text after the cut, and a string without its escapes */
    json_t *root;
    json_t **open; /* from the root to the innermost, borrowed */
    size_t n_open, cap;
};

/* Before first use: zeroed. */
void kube_tree_done(struct kube_tree *t);
/* Forgets any other text and begins with this one, which must stay until the tree is complete. cut: NULL for
 * none. */
void kube_tree_begin(struct kube_tree *t, struct str text, struct kube_cut *cut);
/* Goes on until it has cost about `most`, in the unit of loop_spend(). Returns what it did cost; 0 unless
 * there is more. */
size_t kube_tree_step(struct kube_tree *t, size_t most);
/* The complete tree, a new reference. */
json_t *kube_tree_take(struct kube_tree *t);
/* What the text is, such as "not JSON at line 1, column 7" or "larger than 4 MiB". */
void kube_tree_explain(const struct kube_tree *t, char why[256]);
