/* Builds the tree of a document. Nodes and text live in an arena that the document owns. */
#include "exporter/base/doc.h"

#include "exporter/base/arena.h"
#include "exporter/base/doc_build.h"
#include "exporter/base/json.h"
#include "exporter/base/utf8.h"

#include <errno.h>

enum { CHUNK_BYTES = 64 * 1024 };

struct doc {
    struct arena memory;
    struct node *root;
};

struct doc *doc_free(struct doc *d)
{
    if (d)
        arena_done(&d->memory);
    free(d);
    return NULL;
}

const struct node *doc_root(const struct doc *d)
{
    return d->root;
}

int build_text(struct doc_builder *b, struct str text, struct str *ret)
{
    char *copy = arena_alloc(&b->doc->memory, text.n);

    if (!copy)
        return -ENOMEM;
    if (text.n)
        memcpy(copy, text.p, text.n);
    *ret = (struct str){copy, text.n};
    return 0;
}

int build_json_text(struct doc_builder *b, struct str raw, struct str *ret)
{
    CLEANUP(cleanup_free) char *room = NULL;

    if (raw.n == 0 || !memchr(raw.p, '\\', raw.n))
        return build_text(b, raw, ret);
    room = malloc(raw.n * 3);
    if (!room)
        return -ENOMEM;
    return build_text(b, (struct str){room, jr_unescape(raw, room)}, ret);
}

void build_key(struct doc_builder *b, struct str key, struct place at)
{
    struct doc_frame *f = &b->open[b->depth - 1];

    f->has_key = true;
    f->key = key;
    f->key_at = at;
}

bool build_wants_key(const struct doc_builder *b)
{
    return b->depth && b->open[b->depth - 1].node->kind == NODE_MAP && !b->open[b->depth - 1].has_key;
}

static int build_push(struct doc_builder *b, struct node *n)
{
    if (b->n == b->cap) {
        size_t cap = size_max(2 * b->cap, 64);
        struct node **items = realloc(b->items, cap * sizeof(struct node *));

        if (!items)
            return -ENOMEM;
        b->items = items;
        b->cap = cap;
    }
    b->items[b->n++] = n;
    return 0;
}

/* Adds a new node to the innermost open container, or makes it the root. */
static int build_attach(struct doc_builder *b, struct node *n)
{
    struct doc_frame *f;

    if (!b->depth) {
        b->doc->root = n;
        return 0;
    }
    f = &b->open[b->depth - 1];
    n->parent = f->node;
    n->index = f->node->n++;
    n->key = f->key;
    n->key_line = f->key_at.line;
    n->key_column = f->key_at.column;
    f->has_key = false;
    return build_push(b, n);
}

static int build_node(struct doc_builder *b, enum node_kind kind, struct place at, struct node **ret)
{
    struct node *n;

    if (b->nodes == DOC_MAX_NODES) {
        problems_add(b->p, PROBLEM_ERROR, at.line, at.column,
                     "the document has more than %d values; the rest is ignored", DOC_MAX_NODES);
        return -EINVAL;
    }
    n = arena_alloc(&b->doc->memory, sizeof(*n));
    if (!n)
        return -ENOMEM;
    *n = (struct node){.kind = kind, .line = at.line, .column = at.column};
    b->nodes++;
    *ret = n;
    return build_attach(b, n);
}

int build_scalar(struct doc_builder *b, enum node_kind kind, struct str text, struct place at)
{
    struct node *n;
    int r = build_node(b, kind, at, &n);

    if (r == 0)
        n->text = text;
    return r;
}

int build_open(struct doc_builder *b, enum node_kind kind, struct place at)
{
    struct node *n;
    int r;

    if (b->depth == DOC_MAX_DEPTH) {
        problems_add(b->p, PROBLEM_ERROR, at.line, at.column, "nested deeper than %d levels", DOC_MAX_DEPTH);
        return -EINVAL;
    }
    r = build_node(b, kind, at, &n);
    if (r == 0)
        b->open[b->depth++] = (struct doc_frame){.node = n, .first = b->n};
    return r;
}

static int compare_keys(const void *pa, const void *pb)
{
    const struct node *a = *(struct node *const *)pa, *b = *(struct node *const *)pb;
    int r = str_cmp(a->key, b->key);

    return r ? r : a->index < b->index ? -1 : a->index > b->index;
}

/* Sorts the list, which is a copy, so that a map with 100,000 keys takes no quadratic time. */
static void find_duplicates(struct doc_builder *b, struct node **list, size_t n)
{
    qsort(list, n, sizeof(struct node *), compare_keys);
    for (size_t i = 1, first = 0; i < n; i++) {
        const struct node *x = list[i];

        if (str_eq(x->key, list[first]->key))
            node_key_problem(x, b->p, PROBLEM_ERROR, "duplicate key, first defined at line %u",
                             list[first]->key_line);
        else
            first = i;
    }
}

int build_close(struct doc_builder *b)
{
    struct doc_frame *f = &b->open[--b->depth];
    struct node *n = f->node;
    struct node **children;

    if (n->n == 0)
        return 0;
    children = &b->items[f->first];
    n->items = arena_alloc(&b->doc->memory, n->n * sizeof(struct node *));
    if (!n->items)
        return -ENOMEM;
    memcpy(n->items, children, n->n * sizeof(struct node *));
    b->n = f->first;
    if (n->kind == NODE_MAP && n->n > 1)
        find_duplicates(b, children, n->n);
    return 0;
}

static bool check_utf8(struct str text, struct problems *p)
{
    size_t at = utf8_valid_prefix(text);
    unsigned line, column;

    if (at == text.n)
        return true;
    jr_position(text, at, &line, &column);
    problems_add(p, PROBLEM_ERROR, line, column, "invalid UTF-8: byte 0x%02x", (unsigned char)text.p[at]);
    return false;
}

static bool starts_as_json(struct str text)
{
    struct str s = str_trim(text);

    return s.n && (s.p[0] == '{' || s.p[0] == '[');
}

int doc_parse(struct doc **ret, struct str text, struct problems *p)
{
    CLEANUP(cleanup_doc_free) struct doc *d = calloc(1, sizeof(*d));
    struct doc_builder b = {.doc = d, .p = p};
    int r;

    if (!d)
        return -ENOMEM;
    d->memory.chunk_bytes = CHUNK_BYTES;
    if (text.n == 0)
        text = STR("");
    if (!check_utf8(text, p))
        return -EINVAL;
    if (str_starts(text, STR("\xef\xbb\xbf")))
        text = (struct str){text.p + 3, text.n - 3};
    r = starts_as_json(text) ? doc_read_json(&b, text) : doc_read_yaml(&b, text);
    free(b.items);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(d);
    return 0;
}
