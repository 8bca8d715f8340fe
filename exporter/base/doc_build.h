/* Private to doc*.c: builds the tree for the YAML and the JSON front end. Values come in document order. Open
 * containers are on a stack of fixed height, so nothing recurses. */
#ifndef DS_BASE_DOC_BUILD_H
#define DS_BASE_DOC_BUILD_H

#include "exporter/base/doc.h"

struct place {
    unsigned line, column;
};

struct doc_frame {
    struct node *node;
    size_t first; /* index of its first finished child in doc_builder.items */
    bool has_key;
    struct str key; /* of the next child */
    struct place key_at;
};

struct doc_builder {
    struct doc *doc;
    struct problems *p;
    struct node **items; /* finished children of all open containers, innermost last */
    size_t n, cap;
    size_t nodes;
    struct doc_frame open[DOC_MAX_DEPTH];
    unsigned depth;
};

/* All return 0, -ENOMEM, or -EINVAL after reporting an exceeded limit. */

/* Copies text into the document. */
MUST_USE int build_text(struct doc_builder *b, struct str text, struct str *ret);
/* Like build_text(), for the raw bytes of a JSON string; replaces escapes. */
MUST_USE int build_json_text(struct doc_builder *b, struct str raw, struct str *ret);
/* Sets the next child's key, a text of the document. Only if build_wants_key(). */
void build_key(struct doc_builder *b, struct str key, struct place at);
/* Whether the innermost container is a map whose next child has no key yet. */
bool build_wants_key(const struct doc_builder *b);
/* Adds a scalar with a text of the document. */
MUST_USE int build_scalar(struct doc_builder *b, enum node_kind kind, struct str text, struct place at);
/* Adds a list or a map; the next values are its children. */
MUST_USE int build_open(struct doc_builder *b, enum node_kind kind, struct place at);
MUST_USE int build_close(struct doc_builder *b);

/* The front ends. 0; -EINVAL after reporting the problem; -ENOMEM. */
MUST_USE int doc_read_yaml(struct doc_builder *b, struct str text);
MUST_USE int doc_read_json(struct doc_builder *b, struct str text);

#endif
