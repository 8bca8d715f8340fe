/* Summaries in memory: sharing, comparing, and reading one or a list of them. */
#include "exporter/score/summary.h"

#include "exporter/base/arena.h"
#include "exporter/base/problems.h"
#include "exporter/score/summary_read.h"

#include <errno.h>

/* The offsets of a structure's strings. */
struct texts {
    const size_t *at;
    size_t n;
};

static const size_t in_summary[] = {
    offsetof(struct summary, name),
    offsetof(struct summary, score_name),
    offsetof(struct summary, scoring_endpoint),
    offsetof(struct summary, scoring_auth.name),
    offsetof(struct summary, scoring_auth.key),
    offsetof(struct summary, dimension_format),
};
static const size_t in_source[] = {
    offsetof(struct summary_source, endpoint),
    offsetof(struct summary_source, auth.name),
    offsetof(struct summary_source, auth.key),
    offsetof(struct summary_source, query),
};
static const struct texts summary_texts = {in_summary, ARRAY_SIZE(in_summary)};
static const struct texts source_texts = {in_source, ARRAY_SIZE(in_source)};

static const char *text_at(const void *of, size_t offset)
{
    return *(char *const *)(const void *)((const char *)of + offset);
}

static bool texts_same(const struct texts *t, const void *a, const void *b)
{
    for (size_t i = 0; i < t->n; i++) {
        const char *sa = text_at(a, t->at[i]), *sb = text_at(b, t->at[i]);

        if ((sa == NULL) != (sb == NULL) || (sa && strcmp(sa, sb) != 0))
            return false;
    }
    return true;
}

void summary_done(struct summary *s)
{
    if (s->memory && --s->memory->refs == 0) {
        arena_done(&s->memory->arena);
        free(s->memory);
    }
    *s = (struct summary){0};
}

struct summary summary_copy(const struct summary *s)
{
    if (s->memory)
        s->memory->refs++;
    return *s;
}

static bool same_source(const struct summary_source *a, const struct summary_source *b)
{
    return texts_same(&source_texts, a, b) && a->type == b->type && a->range_s == b->range_s &&
           a->step_s == b->step_s;
}

static bool same_sources(const struct summary *a, const struct summary *b)
{
    bool same = same_source(&a->source, &b->source) && a->n_more_sources == b->n_more_sources;

    for (size_t i = 0; same && i < a->n_more_sources; i++)
        same = same_source(&a->more_sources[i], &b->more_sources[i]);
    return same;
}

bool summary_same(const struct summary *a, const struct summary *b)
{
    return texts_same(&summary_texts, a, b) && same_sources(a, b) && a->interval_ms == b->interval_ms &&
           a->timeout_ms == b->timeout_ms && a->location == b->location && a->destination == b->destination &&
           a->aggregation == b->aggregation && a->has_range == b->has_range && a->range_min >= b->range_min &&
           a->range_min <= b->range_min && a->range_max >= b->range_max && a->range_max <= b->range_max &&
           a->has_fallback == b->has_fallback && a->fallback == b->fallback;
}

size_t summary_sources(const struct summary *s)
{
    return s->source.type == SOURCE_NONE ? 0 : 1 + s->n_more_sources;
}

struct summary_source summary_source(const struct summary *s, size_t i)
{
    return i ? s->more_sources[i - 1] : s->source;
}

void summaries_done(struct summaries *s)
{
    for (size_t i = 0; i < s->n; i++)
        summary_done(&s->list[i]);
    free(s->list);
    *s = (struct summaries){0};
}

static int compare_score_names(const void *pa, const void *pb)
{
    const struct node *a = *(const struct node *const *)pa, *b = *(const struct node *const *)pb;
    int r = str_cmp(a->text, b->text);

    return r ? r : a->parent->index < b->parent->index ? -1 : a->parent->index > b->parent->index;
}

/* Sets later[i], with a warning, for every entry with the score name of an earlier one. */
static void find_duplicate_names(const struct node *list, bool *later, struct problems *p)
{
    CLEANUP(cleanup_free) const struct node **names = xcalloc(list->n, sizeof(struct node *));
    const struct node *first = NULL;
    size_t n = 0;

    for (size_t i = 0; i < list->n; i++) {
        const struct node *name = node_given(list->items[i], "scoreName");

        if (name && name->kind == NODE_STRING && name->text.n)
            names[n++] = name;
    }
    qsort(names, n, sizeof(struct node *), compare_score_names);
    for (size_t i = 0; i < n; i++) {
        if (!first || !str_eq(first->text, names[i]->text)) {
            first = names[i];
            continue;
        }
        later[names[i]->parent->index] = true;
        node_problem(names[i], p, PROBLEM_WARNING,
                     "already used by the summary at line %u; the one at line %u is ignored",
                     first->parent->line, names[i]->parent->line);
    }
}

static int parse_list(struct summaries *s, const struct node *list, enum problem_kind unknown,
                      struct problems *p)
{
    CLEANUP(cleanup_free) bool *later = xcalloc(list->n, sizeof(bool));
    int r = 0;

    s->list = xcalloc(list->n, sizeof(struct summary));
    find_duplicate_names(list, later, p);
    for (size_t i = 0; i < list->n && r == 0; i++) {
        size_t errors = p->errors;
        struct summary *entry = &s->list[s->n];

        r = summary_read(entry, list->items[i], unknown, unknown == PROBLEM_ERROR, p);
        if (r < 0 || later[i] || p->errors != errors)
            summary_done(entry);
        else
            s->n++;
    }
    return r;
}

int summaries_parse(struct summaries *ret, const struct node *node, enum problem_kind unknown,
                    struct problems *p)
{
    CLEANUP(summaries_done) struct summaries s = {0};
    int r = 0;

    if (node->kind != NODE_LIST)
        node_expected(node, p, "a list of summaries");
    else if (node->n)
        r = parse_list(&s, node, unknown, p);
    if (r < 0)
        return r;
    *ret = s;
    s = (struct summaries){0};
    return 0;
}

int summary_parse(struct summary *ret, struct str text, struct problems *ret_problems)
{
    CLEANUP(cleanup_doc_free) struct doc *doc = NULL;
    struct problems *p = ret_problems;
    int r;

    *ret = (struct summary){0};
    *p = (struct problems){0};
    problems_init(p, "summary");
    if (!str_starts(str_trim(text), STR("{"))) { /* doc_parse() would read it as YAML */
        problems_add(p, PROBLEM_ERROR, 0, 0, "expected a JSON object");
        return 0;
    }
    r = doc_parse(&doc, text, p);
    if (r == 0)
        r = summary_read(ret, doc_root(doc), PROBLEM_WARNING, true, p);
    if (r < 0 || p->errors)
        summary_done(ret);
    return r == -EINVAL ? 0 : r;
}
