/* Private to doc*.c: what the YAML and the JSON front end build a tree with. Values come in document order;
 * open containers stand on a stack of fixed height, so nothing recurses. */
#ifndef DS_BASE_DOC_BUILD_H
#define DS_BASE_DOC_BUILD_H

#include "exporter/base/doc.h"

struct place {
    unsigned line, column;
};

struct doc_frame {
    struct node *node;
    size_t first; /* its first finished child in `items` of the builder */
    bool has_key;
    struct str key; /* of the child to come */
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

/* All return 0; -ENOMEM; -EINVAL when a ceiling was passed, which was noted. */

/* Copies text into the document. */
MUST_USE int build_text(struct doc_builder *b, struct str text, struct str *ret);
/* The bytes between a JSON string's quotes, with escapes replaced. */
MUST_USE int build_json_text(struct doc_builder *b, struct str raw, struct str *ret);
/* The next child's name; text of the document. Only when build_wants_key(). */
void build_key(struct doc_builder *b, struct str key, struct place at);
/* A map is open and its next child has no name yet. */
bool build_wants_key(const struct doc_builder *b);
/* A value without children; text of the document. */
MUST_USE int build_scalar(struct doc_builder *b, enum node_kind kind, struct str text, struct place at);
/* A list or map, whose children come next. */
MUST_USE int build_open(struct doc_builder *b, enum node_kind kind, struct place at);
MUST_USE int build_close(struct doc_builder *b);

/* The front ends. 0; -EINVAL with the problem noted; -ENOMEM. */
MUST_USE int doc_read_yaml(struct doc_builder *b, struct str text);
MUST_USE int doc_read_json(struct doc_builder *b, struct str text);

#endif
