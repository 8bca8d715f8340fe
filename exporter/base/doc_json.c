/* The JSON front end: the pull parser's values with their line and column. */
#include "exporter/base/doc.h"

#include "exporter/base/doc_build.h"
#include "exporter/base/json.h"
#include "exporter/base/problems.h"

#include <errno.h>

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
    int rc;

    if (!jr_string(&r->j, &raw))
        return 0;
    rc = build_json_text(r->b, raw, &text);
    return rc ?: build_scalar(r->b, NODE_STRING, text, json_place_of(r, raw.p - 1));
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
    int rc;

    if (!jr_skip(&r->j, &raw))
        return 0;
    kind = type == JR_NULL ? NODE_NULL : type == JR_NUMBER ? json_number_kind(raw) : NODE_BOOL;
    rc = build_text(r->b, raw, &text);
    return rc ?: build_scalar(r->b, kind, text, json_place_of(r, raw.p));
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
static int json_next_value(struct reader *r, bool *more)
{
    *more = false;
    while (r->b->depth && !r->j.error) {
        struct str raw, key;
        int rc;

        if (r->b->open[r->b->depth - 1].node->kind == NODE_LIST) {
            *more = jr_item(&r->j);
        } else if (jr_member(&r->j, &raw)) {
            rc = build_json_text(r->b, raw, &key);
            if (rc < 0)
                return rc;
            build_key(r->b, key, json_place_of(r, raw.p - 1));
            *more = true;
        }
        if (*more || r->j.error)
            return 0;
        rc = build_close(r->b);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int doc_read_json(struct doc_builder *b, struct str text)
{
    struct reader r = {.b = b, .at = text.p, .line_start = text.p, .line = 1};
    bool more = true;
    unsigned line, column;

    jr_init(&r.j, text, JR_STRICT);
    while (more && !r.j.error) {
        int rc = json_read_value(&r);

        if (rc == 0 && !r.j.error)
            rc = json_next_value(&r, &more);
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
