/* Builds the tree of a document. Nodes and text live in an arena that the document owns. */
#include "exporter/base/doc.h"

#include "exporter/base/alloc.h"
#include "exporter/base/arena.h"
#include "exporter/base/escape.h"
#include "exporter/base/json.h"
#include "exporter/base/map.h"
#include "exporter/base/utf8.h"

#include <errno.h>
#include <yaml.h>

enum { CHUNK_BYTES = 64 * 1024 };

struct place {
    unsigned line, column;
};

struct builder {
    struct doc *doc;
    struct problems *p;
    struct node *open; /* the innermost container, whose child is next; NULL outside of all */
    unsigned depth;
    size_t nodes;
    bool has_key; /* of the next child of a map */
    struct str key;
    struct place key_at;
};

struct doc *doc_free(struct doc *d)
{
    if (d)
        arena_done(&d->memory);
    free(d);
    return NULL;
}

static int PRINTF_LIKE(3, 4) build_refuse(struct builder *b, struct place at, const char *fmt, ...)
{
    CLEANUP(cleanup_free) char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    text = xvasprintf(fmt, ap);
    va_end(ap);
    problems_add(b->p, PROBLEM_ERROR, at.line, at.column, "%s", text);
    return -EINVAL;
}

/* A terminated copy in the document. */
static struct str build_text(struct builder *b, struct str text)
{
    return (struct str){arena_text(&b->doc->memory, text), text.n};
}

static bool build_wants_key(const struct builder *b)
{
    return b->open && b->open->kind == NODE_MAP && !b->has_key;
}

/* The list doubles whenever its length is a power of two. */
static void build_attach(struct builder *b, struct node *parent, struct node *n)
{
    n->parent = parent;
    n->index = parent->n;
    n->key = b->key;
    n->key_line = b->key_at.line;
    n->key_column = b->key_at.column;
    b->has_key = false;
    if ((parent->n & (parent->n - 1)) == 0) {
        struct node **items = arena_alloc(&b->doc->memory, size_max(2 * parent->n, 1) * sizeof(*items));

        parent->items = parent->n ? memcpy(items, parent->items, parent->n * sizeof(*items)) : items;
    }
    parent->items[parent->n++] = n;
}

/* Adds a value to the innermost container, or as the root. After a list or a map the next values are its
 * children. `text`: of the document. */
static int build_add(struct builder *b, enum node_kind kind, struct str text, struct place at)
{
    bool opens = kind == NODE_LIST || kind == NODE_MAP;
    struct node *n;

    if (opens && b->depth == DOC_MAX_DEPTH)
        return build_refuse(b, at, "nested deeper than %d levels", DOC_MAX_DEPTH);
    if (b->nodes++ == DOC_MAX_NODES)
        return build_refuse(b, at, "the document has more than %d values", DOC_MAX_NODES);
    n = arena_alloc(&b->doc->memory, sizeof(*n));
    *n = (struct node){.kind = kind, .line = at.line, .column = at.column, .text = text};
    if (b->open)
        build_attach(b, b->open, n);
    else
        b->doc->root = n;
    if (opens) {
        b->open = n;
        b->depth++;
    }
    return 0;
}

static void find_duplicates(const struct node *map, struct problems *p)
{
    CLEANUP(map_done) struct map seen = {0};

    for (size_t i = 0; i < map->n; i++) {
        const struct node *first = map_get(&seen, map->items[i]->key.p);

        if (first)
            node_key_problem(map->items[i], p, PROBLEM_ERROR, "duplicate key, first defined at line %u",
                             first->key_line);
        else
            map_set(&seen, map->items[i]->key.p, map->items[i]);
    }
}

/* [-+]?[0-9]+ is an integer; [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)? is a float. */
static enum node_kind number_kind(const char *s)
{
    const char *unsigned_part = s + (*s == '-' || *s == '+');
    char *end;

    if (*unsigned_part && !unsigned_part[strspn(unsigned_part, "0123456789")])
        return NODE_INT;
    (void)strtod(s, &end);
    return end > s && !*end && !s[strspn(s, "0123456789+-.eE")] ? NODE_DOUBLE : NODE_STRING;
}

static enum node_kind plain_kind(const char *s)
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
        if (strcmp(s, words[i].word) == 0)
            return words[i].kind;
    return number_kind(s);
}

/* ---- YAML: libyaml's events, with scalars typed by the core schema ---- */

#define CORE_TAG "tag:yaml.org,2002:"

static struct place yaml_place(const yaml_mark_t *m)
{
    return (struct place){(unsigned)m->line + 1, (unsigned)m->column + 1};
}

static enum node_kind yaml_scalar_kind(struct builder *b, const yaml_event_t *ev)
{
    const char *tag = (const char *)ev->data.scalar.tag, *value = (const char *)ev->data.scalar.value;

    if (!tag)
        return ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? plain_kind(value) : NODE_STRING;
    if (strcmp(tag, "!") == 0 || strcmp(tag, CORE_TAG "str") == 0)
        return NODE_STRING;
    if (strcmp(tag, CORE_TAG "int") == 0 && number_kind(value) == NODE_INT)
        return NODE_INT;
    (void)build_refuse(b, yaml_place(&ev->start_mark), "%s",
                       strcmp(tag, CORE_TAG "int") == 0
                           ? "tagged !!int but not a decimal integer"
                           : "tags other than !!str and !!int are not supported");
    return NODE_BROKEN;
}

/* YAML 1.1, which many programs still read, takes an integer with a leading zero for an octal number. */
static void yaml_warn_of_octal(struct builder *b, struct str integer, struct place at)
{
    struct str digits = integer;

    if (digits.n && (digits.p[0] == '-' || digits.p[0] == '+'))
        digits = (struct str){digits.p + 1, digits.n - 1};
    while (digits.n > 1 && digits.p[0] == '0')
        digits = (struct str){digits.p + 1, digits.n - 1};
    if (digits.p > integer.p && digits.p[-1] == '0')
        problems_add(b->p, PROBLEM_WARNING, at.line, at.column,
                     "%.*s is read as the decimal number %s%.*s, not as an octal one", STR_ARG(integer),
                     integer.p[0] == '-' ? "-" : "", STR_ARG(digits));
}

static int yaml_read_value(struct builder *b, const yaml_event_t *ev, struct str value, struct place at)
{
    enum node_kind kind = yaml_scalar_kind(b, ev);

    if (kind == NODE_INT)
        yaml_warn_of_octal(b, value, at);
    return build_add(b, kind, build_text(b, value), at);
}

static int yaml_read_scalar(struct builder *b, const yaml_event_t *ev)
{
    struct str value = {(const char *)ev->data.scalar.value, ev->data.scalar.length};
    struct place at = yaml_place(&ev->start_mark);

    if (!build_wants_key(b))
        return yaml_read_value(b, ev, value, at);
    if (ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && str_eq(value, STR("<<")))
        return build_refuse(b, at, "merge keys (<<) are not supported; repeat the members");
    b->has_key = true;
    b->key = build_text(b, value);
    b->key_at = at;
    return 0;
}

static int yaml_read_start(struct builder *b, const yaml_event_t *ev, enum node_kind kind,
                           const yaml_char_t *tag)
{
    struct place at = yaml_place(&ev->start_mark);

    if (build_wants_key(b))
        return build_refuse(b, at, "a list or an object cannot be a key");
    if (tag)
        (void)build_refuse(b, at, "tags other than !!str and !!int are not supported");
    return build_add(b, kind, STR(""), at);
}

/* *done: stop after this event. */
static int yaml_read_event(struct builder *b, const yaml_event_t *ev, bool *done)
{
    struct place at = yaml_place(&ev->start_mark);
    int r;

    switch (ev->type) {
    case YAML_DOCUMENT_START_EVENT:
        *done = b->nodes > 0;
        if (*done)
            (void)build_refuse(b, at, "expected a single document, but another one starts here");
        return 0;
    case YAML_ALIAS_EVENT:
        r = build_refuse(b, at, "aliases are not supported; repeat the value");
        return build_wants_key(b) ? r : build_add(b, NODE_BROKEN, STR(""), at);
    case YAML_SCALAR_EVENT:
        return yaml_read_scalar(b, ev);
    case YAML_SEQUENCE_START_EVENT:
        return yaml_read_start(b, ev, NODE_LIST, ev->data.sequence_start.tag);
    case YAML_MAPPING_START_EVENT:
        return yaml_read_start(b, ev, NODE_MAP, ev->data.mapping_start.tag);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        if (b->open->kind == NODE_MAP)
            find_duplicates(b->open, b->p);
        b->open = b->open->parent;
        b->depth--;
        return 0;
    default:
        *done = ev->type == YAML_STREAM_END_EVENT;
        return 0;
    }
}

/* Reports libyaml's error. */
static int yaml_syntax_error(struct builder *b, const yaml_parser_t *y, struct str text)
{
    struct place at = yaml_place(&y->problem_mark), from = yaml_place(&y->context_mark);
    const char *problem = y->problem_mark.index < text.n ? cstr(y->problem) : "unexpected end";

    if (y->error == YAML_READER_ERROR)
        jr_position(text, size_min(y->problem_offset, text.n), &at.line, &at.column);
    if (!y->context)
        return build_refuse(b, at, "YAML: %s", problem);
    return build_refuse(b, at, "YAML: %s, %s (from line %u, column %u)", problem, y->context, from.line,
                        from.column);
}

static int doc_read_yaml(struct builder *b, struct str text)
{
    bool done = false;
    yaml_parser_t y;
    yaml_event_t ev;
    int r = 0;

    if (!yaml_parser_initialize(&y))
        memory_exhausted(sizeof(y));
    yaml_parser_set_encoding(&y, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&y, (const unsigned char *)text.p, text.n);
    while (r == 0 && !done) {
        if (!yaml_parser_parse(&y, &ev)) {
            r = yaml_syntax_error(b, &y, text);
            break;
        }
        r = yaml_read_event(b, &ev, &done);
        yaml_event_delete(&ev);
    }
    yaml_parser_delete(&y);
    return r == 0 && b->nodes == 0 ? build_add(b, NODE_NULL, STR(""), (struct place){1, 1}) : r;
}

/* JSON writes characters beyond U+FFFF as two escapes, which libyaml refuses: puts the character itself
 * there, and U+FFFD for half of one. `out` has room for text.n bytes. */
static struct str join_surrogates(struct str text, char *out)
{
    char *end = out;

    while (text.n) {
        uint32_t c = 0;
        size_t took = *text.p == '\\' ? jr_escape(text, &c) : 1;

        if (c > 0xffff || (c >= 0xd800 && c <= 0xdfff))
            end += utf8_write(c, end);
        else
            end = mempcpy(end, text.p, took);
        text = (struct str){text.p + took, text.n - took};
    }
    return (struct str){out, (size_t)(end - out)};
}

int doc_parse(struct doc **ret, struct str text, struct problems *p)
{
    CLEANUP(cleanup_doc_free) struct doc *d = xcalloc(1, sizeof(*d));
    struct builder b = {.doc = d, .p = p};
    size_t good = utf8_valid_prefix(text);
    CLEANUP(cleanup_free) char *joined = NULL;
    struct str trimmed;
    struct place at;
    int r;

    d->memory.chunk_bytes = CHUNK_BYTES;
    if (good < text.n) {
        jr_position(text, good, &at.line, &at.column);
        return build_refuse(&b, at, "invalid UTF-8: byte 0x%02x", (unsigned char)text.p[good]);
    }
    if (str_starts(text, STR("\xef\xbb\xbf")))
        text = (struct str){text.p + 3, text.n - 3};
    trimmed = str_trim(text);
    if (trimmed.n && strchr("{[", *trimmed.p) && memchr(text.p, '\\', text.n)) {
        joined = xmalloc(text.n);
        text = join_surrogates(text, joined);
    }
    r = doc_read_yaml(&b, text.n ? text : STR(""));
    if (r == 0)
        *ret = TAKE_PTR(d);
    return r;
}
