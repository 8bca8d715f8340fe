/* The YAML front end: libyaml's events, with scalars typed by the core schema. */
#include "exporter/base/doc.h"

#include "exporter/base/doc_build.h"
#include "exporter/base/json.h"
#include "exporter/base/problems.h"

#include <errno.h>
#include <yaml.h>

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
    int r;

    if (ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && str_eq(value, STR("<<")))
        return yaml_refuse(b, ev, "merge keys (<<) are not supported; repeat the members");
    r = build_text(b, value, &key);
    if (r == 0)
        build_key(b, key, yaml_place_of(&ev->start_mark));
    return r;
}

static int yaml_read_scalar(struct doc_builder *b, const yaml_event_t *ev)
{
    struct str value = {(const char *)ev->data.scalar.value, ev->data.scalar.length}, text;
    enum node_kind kind;
    int r;

    if (build_wants_key(b))
        return yaml_read_key(b, ev, value);
    kind = scalar_kind(b, ev, value);
    r = build_text(b, value, &text);
    return r ?: build_scalar(b, kind, text, yaml_place_of(&ev->start_mark));
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
        return build_close(b);
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

int doc_read_yaml(struct doc_builder *b, struct str text)
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
