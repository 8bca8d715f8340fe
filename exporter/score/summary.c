/* Summaries in memory: freeing, copying, comparing, and reading a whole list. */
#include "exporter/score/summary.h"

#include "exporter/score/summary_read.h"

#include <errno.h>

/* Every field that is a string. */
static const size_t strings[] = {
    offsetof(struct summary, name),
    offsetof(struct summary, score_name),
    offsetof(struct summary, source_endpoint),
    offsetof(struct summary, source_auth.name),
    offsetof(struct summary, source_auth.key),
    offsetof(struct summary, source_query),
    offsetof(struct summary, scoring_endpoint),
    offsetof(struct summary, scoring_auth.name),
    offsetof(struct summary, scoring_auth.key),
    offsetof(struct summary, dimension_format),
};

static char **string_at(const struct summary *s, size_t i)
{
    return (char **)(void *)((char *)(uintptr_t)s + strings[i]);
}

void summary_done(struct summary *s)
{
    for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
        free(*string_at(s, i));
    *s = (struct summary){0};
}

int summary_copy(struct summary *ret, const struct summary *from)
{
    CLEANUP(summary_done) struct summary s = *from;

    for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
        *string_at(&s, i) = NULL;
    for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
        const char *text = *string_at(from, i);

        if (text && !(*string_at(&s, i) = strdup(text)))
            return -ENOMEM;
    }
    *ret = s;
    s = (struct summary){0};
    return 0;
}

bool summary_same(const struct summary *a, const struct summary *b)
{
    for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
        const char *sa = *string_at(a, i), *sb = *string_at(b, i);

        if ((sa == NULL) != (sb == NULL) || (sa && strcmp(sa, sb) != 0))
            return false;
    }
    return a->source_type == b->source_type && a->source_range_s == b->source_range_s &&
           a->source_step_s == b->source_step_s && a->interval_ms == b->interval_ms &&
           a->timeout_ms == b->timeout_ms && a->location == b->location && a->destination == b->destination &&
           a->aggregation == b->aggregation && a->has_range == b->has_range && a->range_min >= b->range_min &&
           a->range_min <= b->range_min && a->range_max >= b->range_max && a->range_max <= b->range_max &&
           a->has_fallback == b->has_fallback && a->fallback == b->fallback;
}

void summaries_done(struct summaries *s)
{
    for (size_t i = 0; i < s->n; i++)
        summary_done(&s->list[i]);
    free(s->list);
    *s = (struct summaries){0};
}

static int compare_names(const void *pa, const void *pb)
{
    const struct node *a = *(const struct node *const *)pa, *b = *(const struct node *const *)pb;
    int r = str_cmp(a->text, b->text);

    return r ? r : a->parent->index < b->parent->index ? -1 : a->parent->index > b->parent->index;
}

/* Sets later[i] for every entry whose score name an earlier one has, and says so. */
static int find_repeated(const struct node *list, bool *later, struct problems *p)
{
    CLEANUP(cleanup_free) const struct node **names = calloc(list->n, sizeof(struct node *));
    const struct node *first = NULL;
    size_t n = 0;

    if (!names)
        return -ENOMEM;
    for (size_t i = 0; i < list->n; i++) {
        const struct node *name = node_given(list->items[i], "scoreName");

        if (name && name->kind == NODE_STRING && name->text.n)
            names[n++] = name;
    }
    qsort(names, n, sizeof(struct node *), compare_names);
    for (size_t i = 0; i < n; i++) {
        if (!first || !str_eq(first->text, names[i]->text)) {
            first = names[i];
            continue;
        }
        later[names[i]->parent->index] = true;
        node_problem(names[i], p, PROBLEM_WARNING,
                     "the summary at line %u already has this score name: this one (line %u) is left out",
                     first->parent->line, names[i]->parent->line);
    }
    return 0;
}

static int parse_list(struct summaries *s, const struct node *list, enum problem_kind unknown,
                      struct problems *p)
{
    CLEANUP(cleanup_free) bool *later = calloc(list->n, sizeof(bool));
    int r;

    s->list = calloc(list->n, sizeof(struct summary));
    if (!later || !s->list)
        return -ENOMEM;
    r = find_repeated(list, later, p);
    for (size_t i = 0; i < list->n && r == 0; i++) {
        size_t errors = p->errors;
        struct summary *entry = &s->list[s->n];

        r = summary_read(entry, list->items[i], unknown, p);
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
