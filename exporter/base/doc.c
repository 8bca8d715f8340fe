/* Builds the tree of a document. Nodes and text live in an arena that the document owns. */
#include "exporter/base/doc.h"

#include "exporter/base/arena.h"
#include "exporter/base/json.h"
#include "exporter/base/problems.h"
#include "exporter/base/utf8.h"

#include <errno.h>
#include <yaml.h>

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

/* The front ends. 0; -EINVAL after reporting the problem; -ENOMEM. */
static int doc_read_json(struct doc_builder *b, struct str text);
static int doc_read_yaml(struct doc_builder *b, struct str text);

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

/* Copies text into the document. */
static void build_text(struct doc_builder *b, struct str text, struct str *ret)
{
    char *copy = arena_alloc(&b->doc->memory, text.n);

    if (text.n)
        memcpy(copy, text.p, text.n);
    *ret = (struct str){copy, text.n};
}

/* Like build_text(), for the raw bytes of a JSON string; replaces escapes. */
static void build_json_text(struct doc_builder *b, struct str raw, struct str *ret)
{
    CLEANUP(cleanup_free) char *room = NULL;

    if (raw.n == 0 || !memchr(raw.p, '\\', raw.n)) {
        build_text(b, raw, ret);
        return;
    }
    room = xmalloc(raw.n * 3);
    build_text(b,
               (struct str){
                   room,
                   jr_unescape(raw, room),
               },
               ret);
}

/* Sets the next child's key, a text of the document. Only if build_wants_key(). */
static void build_key(struct doc_builder *b, struct str key, struct place at)
{
    struct doc_frame *f = &b->open[b->depth - 1];

    f->has_key = true;
    f->key = key;
    f->key_at = at;
}

/* Whether the innermost container is a map whose next child has no key yet. */
static bool build_wants_key(const struct doc_builder *b)
{
    return b->depth && b->open[b->depth - 1].node->kind == NODE_MAP && !b->open[b->depth - 1].has_key;
}

static void build_push(struct doc_builder *b, struct node *n)
{
    if (b->n == b->cap) {
        size_t cap = size_max(2 * b->cap, 64);
        struct node **items = xrealloc(b->items, cap * sizeof(struct node *));

        b->items = items;
        b->cap = cap;
    }
    b->items[b->n++] = n;
}

/* Adds a new node to the innermost open container, or makes it the root. */
static void build_attach(struct doc_builder *b, struct node *n)
{
    struct doc_frame *f;

    if (!b->depth) {
        b->doc->root = n;
        return;
    }
    f = &b->open[b->depth - 1];
    n->parent = f->node;
    n->index = f->node->n++;
    n->key = f->key;
    n->key_line = f->key_at.line;
    n->key_column = f->key_at.column;
    f->has_key = false;
    build_push(b, n);
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
    *n = (struct node){.kind = kind, .line = at.line, .column = at.column};
    b->nodes++;
    *ret = n;
    build_attach(b, n);
    return 0;
}

/* Adds a scalar with a text of the document. */
static int build_scalar(struct doc_builder *b, enum node_kind kind, struct str text, struct place at)
{
    struct node *n;
    int r = build_node(b, kind, at, &n);

    if (r == 0)
        n->text = text;
    return r;
}

/* Adds a list or a map; the next values are its children. */
static int build_open(struct doc_builder *b, enum node_kind kind, struct place at)
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

static void build_close(struct doc_builder *b)
{
    struct doc_frame *f = &b->open[--b->depth];
    struct node *n = f->node;
    struct node **children;

    if (n->n == 0)
        return;
    children = &b->items[f->first];
    n->items = arena_alloc(&b->doc->memory, n->n * sizeof(struct node *));
    memcpy(n->items, children, n->n * sizeof(struct node *));
    b->n = f->first;
    if (n->kind == NODE_MAP && n->n > 1)
        find_duplicates(b, children, n->n);
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
    CLEANUP(cleanup_doc_free) struct doc *d = xcalloc(1, sizeof(*d));
    struct doc_builder b = {.doc = d, .p = p};
    int r;

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

/* The JSON front end: the pull parser's values with their line and column. */

struct reader {
    struct jr j;
    struct doc_builder *b;
    /* The last place computed. Places are computed in order, so lines are counted in one pass. */
    const char *at, *line_start;
    unsigned line;
};

static struct place json_place_of(struct reader *r, const char *p)
{
    const char *nl;

    while (r->at < p && (nl = memchr(r->at, '\n', (size_t)(p - r->at)))) {
        r->line++;
        r->at = r->line_start = nl + 1;
    }
    r->at = p;
    return (struct place){r->line, (unsigned)(p - r->line_start) + 1};
}

static int json_read_string(struct reader *r)
{
    struct str raw, text;

    if (!jr_string(&r->j, &raw))
        return 0;
    build_json_text(r->b, raw, &text);
    return build_scalar(r->b, NODE_STRING, text, json_place_of(r, raw.p - 1));
}

static enum node_kind json_number_kind(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '.' || s.p[i] == 'e' || s.p[i] == 'E')
            return NODE_DOUBLE;
    return NODE_INT;
}

static int json_read_bare(struct reader *r, enum jr_type type)
{
    struct str raw, text;
    enum node_kind kind;

    if (!jr_skip(&r->j, &raw))
        return 0;
    kind = type == JR_NULL ? NODE_NULL : type == JR_NUMBER ? json_number_kind(raw) : NODE_BOOL;
    build_text(r->b, raw, &text);
    return build_scalar(r->b, kind, text, json_place_of(r, raw.p));
}

static int json_read_value(struct reader *r)
{
    enum jr_type type = jr_peek(&r->j);

    switch (type) {
    case JR_OBJECT:
        return jr_object(&r->j) ? build_open(r->b, NODE_MAP, json_place_of(r, r->j.p - 1)) : 0;
    case JR_ARRAY:
        return jr_array(&r->j) ? build_open(r->b, NODE_LIST, json_place_of(r, r->j.p - 1)) : 0;
    case JR_STRING:
        return json_read_string(r);
    default:
        return json_read_bare(r, type);
    }
}

/* Moves to the next value, closing the containers that end. *more: whether there is one. */
static void json_next_value(struct reader *r, bool *more)
{
    *more = false;
    while (r->b->depth && !r->j.error) {
        struct str raw, key;

        if (r->b->open[r->b->depth - 1].node->kind == NODE_LIST) {
            *more = jr_item(&r->j);
        } else if (jr_member(&r->j, &raw)) {
            build_json_text(r->b, raw, &key);
            build_key(r->b, key, json_place_of(r, raw.p - 1));
            *more = true;
        }
        if (*more || r->j.error)
            return;
        build_close(r->b);
    }
}

static int doc_read_json(struct doc_builder *b, struct str text)
{
    struct reader r = {.b = b, .at = text.p, .line_start = text.p, .line = 1};
    bool more = true;
    unsigned line, column;

    jr_init(&r.j, text, JR_STRICT);
    while (more && !r.j.error) {
        int rc = json_read_value(&r);

        if (rc == 0 && !r.j.error)
            json_next_value(&r, &more);
        if (rc < 0)
            return rc;
    }
    if (jr_end(&r.j))
        return 0;
    jr_position(text, r.j.error_at, &line, &column);
    problems_add(b->p, PROBLEM_ERROR, line, column, "invalid JSON (the document starts with %c): %s",
                 str_trim(text).p[0], r.j.error);
    return -EINVAL;
}

/* The YAML front end: libyaml's events, with scalars typed by the core schema. */

#define CORE_TAG "tag:yaml.org,2002:"

static struct place yaml_place_of(const yaml_mark_t *m)
{
    return (struct place){(unsigned)m->line + 1, (unsigned)m->column + 1};
}

static int yaml_refuse(struct doc_builder *b, const yaml_event_t *ev, const char *why)
{
    struct place at = yaml_place_of(&ev->start_mark);

    problems_add(b->p, PROBLEM_ERROR, at.line, at.column, "%s", why);
    return -EINVAL;
}

static size_t digits(struct str s, size_t at)
{
    size_t from = at;

    while (at < s.n && s.p[at] >= '0' && s.p[at] <= '9')
        at++;
    return at - from;
}

/* [-+]?[0-9]+ is an integer; [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? is a float. */
static enum node_kind yaml_number_kind(struct str s)
{
    size_t at = s.n && (s.p[0] == '-' || s.p[0] == '+') ? 1 : 0;
    size_t whole = digits(s, at), fraction = 0, exponent;

    at += whole;
    if (whole && at == s.n)
        return NODE_INT;
    if (at < s.n && s.p[at] == '.') {
        fraction = digits(s, at + 1);
        at += 1 + fraction;
    }
    if (whole + fraction == 0)
        return NODE_STRING;
    if (at < s.n && (s.p[at] == 'e' || s.p[at] == 'E')) {
        at += at + 1 < s.n && (s.p[at + 1] == '-' || s.p[at + 1] == '+') ? 2 : 1;
        exponent = digits(s, at);
        if (exponent == 0)
            return NODE_STRING;
        at += exponent;
    }
    return at == s.n ? NODE_DOUBLE : NODE_STRING;
}

static enum node_kind plain_kind(struct str s)
{
    static const struct {
        const char *word;
        enum node_kind kind;
    } words[] = {
        {"", NODE_NULL},        {"~", NODE_NULL},      {"null", NODE_NULL},  {"Null", NODE_NULL},
        {"NULL", NODE_NULL},    {"true", NODE_BOOL},   {"True", NODE_BOOL},  {"TRUE", NODE_BOOL},
        {"false", NODE_BOOL},   {"False", NODE_BOOL},  {"FALSE", NODE_BOOL}, {".inf", NODE_DOUBLE},
        {"-.inf", NODE_DOUBLE}, {".nan", NODE_DOUBLE},
    };

    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (str_eq(s, str_of(words[i].word)))
            return words[i].kind;
    return yaml_number_kind(s);
}

static enum node_kind scalar_kind(struct doc_builder *b, const yaml_event_t *ev, struct str value)
{
    const char *tag = (const char *)ev->data.scalar.tag;

    if (!tag)
        return ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? plain_kind(value) : NODE_STRING;
    if (strcmp(tag, "!") == 0 || strcmp(tag, CORE_TAG "str") == 0)
        return NODE_STRING;
    if (strcmp(tag, CORE_TAG "int") != 0)
        (void)yaml_refuse(b, ev, "tags other than !!str and !!int are not supported");
    else if (yaml_number_kind(value) == NODE_INT)
        return NODE_INT;
    else
        (void)yaml_refuse(b, ev, "tagged !!int but not a decimal integer");
    return NODE_BROKEN;
}

static int yaml_read_key(struct doc_builder *b, const yaml_event_t *ev, struct str value)
{
    struct str key;

    if (ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && str_eq(value, STR("<<")))
        return yaml_refuse(b, ev, "merge keys (<<) are not supported; repeat the members");
    build_text(b, value, &key);
    build_key(b, key, yaml_place_of(&ev->start_mark));
    return 0;
}

static int yaml_read_scalar(struct doc_builder *b, const yaml_event_t *ev)
{
    struct str value = {(const char *)ev->data.scalar.value, ev->data.scalar.length}, text;
    enum node_kind kind;

    if (build_wants_key(b))
        return yaml_read_key(b, ev, value);
    kind = scalar_kind(b, ev, value);
    build_text(b, value, &text);
    return build_scalar(b, kind, text, yaml_place_of(&ev->start_mark));
}

static int yaml_read_start(struct doc_builder *b, const yaml_event_t *ev, enum node_kind kind,
                           const yaml_char_t *tag)
{
    if (build_wants_key(b))
        return yaml_refuse(b, ev, "a list or an object cannot be a key");
    if (tag)
        (void)yaml_refuse(b, ev, "tags other than !!str and !!int are not supported");
    return build_open(b, kind, yaml_place_of(&ev->start_mark));
}

static int yaml_read_alias(struct doc_builder *b, const yaml_event_t *ev)
{
    int r = yaml_refuse(b, ev, "aliases are not supported; repeat the value");

    return build_wants_key(b) ? r : build_scalar(b, NODE_BROKEN, STR(""), yaml_place_of(&ev->start_mark));
}

/* *done: stop after this event. */
static int yaml_read_event(struct doc_builder *b, const yaml_event_t *ev, bool *done)
{
    switch (ev->type) {
    case YAML_DOCUMENT_START_EVENT:
        *done = b->nodes > 0;
        if (*done)
            (void)yaml_refuse(b, ev, "expected a single document, but another one starts here");
        return 0;
    case YAML_ALIAS_EVENT:
        return yaml_read_alias(b, ev);
    case YAML_SCALAR_EVENT:
        return yaml_read_scalar(b, ev);
    case YAML_SEQUENCE_START_EVENT:
        return yaml_read_start(b, ev, NODE_LIST, ev->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return yaml_read_start(b, ev, NODE_MAP, ev->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        build_close(b);
        return 0;
    case YAML_STREAM_END_EVENT:
        *done = true;
        return 0;
    default:
        return 0;
    }
}

/* Reports libyaml's error. */
static int yaml_syntax_error(struct doc_builder *b, const yaml_parser_t *y, struct str text)
{
    struct place at = yaml_place_of(&y->problem_mark), from = yaml_place_of(&y->context_mark);
    const char *problem = cstr(y->problem);

    if (y->error == YAML_MEMORY_ERROR)
        return -ENOMEM;
    if (y->error == YAML_READER_ERROR)
        jr_position(text, size_min(y->problem_offset, text.n), &at.line, &at.column);
    if (y->context)
        problems_add(b->p, PROBLEM_ERROR, at.line, at.column, "YAML: %s, %s (from line %u, column %u)",
                     problem, y->context, from.line, from.column);
    else
        problems_add(b->p, PROBLEM_ERROR, at.line, at.column, "YAML: %s", problem);
    return -EINVAL;
}

static int yaml_read_stream(struct doc_builder *b, yaml_parser_t *y, struct str text)
{
    bool done = false;
    yaml_event_t ev;
    int r;

    do {
        if (!yaml_parser_parse(y, &ev))
            return yaml_syntax_error(b, y, text);
        r = yaml_read_event(b, &ev, &done);
        yaml_event_delete(&ev);
    } while (r == 0 && !done);
    return r;
}

static int doc_read_yaml(struct doc_builder *b, struct str text)
{
    yaml_parser_t y;
    int r;

    if (!yaml_parser_initialize(&y))
        return -ENOMEM;
    yaml_parser_set_encoding(&y, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&y, (const unsigned char *)text.p, text.n);
    r = yaml_read_stream(b, &y, text);
    yaml_parser_delete(&y);
    if (r == 0 && b->nodes == 0)
        r = build_scalar(b, NODE_NULL, STR(""), (struct place){1, 1});
    return r;
}
