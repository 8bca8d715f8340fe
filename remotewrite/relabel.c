#include "remotewrite/relabel.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>

enum action { REPLACE, KEEP, DROP, LABELDROP, LABELKEEP, LABELMAP, ACTIONS };
enum { MAX_SOURCES = 32, MAX_GROUPS = 10 };

static const char *const action_words[ACTIONS] = {"replace",   "keep",      "drop",
                                                  "labeldrop", "labelkeep", "labelmap"};

struct relabel_rule {
    enum action action;
    regex_t regex;
    bool has_regex;
    char *sources[MAX_SOURCES];
    size_t n_sources;
    char *separator, *target, *replacement;
};

static const char *const keys[] = {"source_labels", "separator", "target_label", "regex", "replacement",
                                   "action",        NULL};

static int keep_text(const struct node *n, const char *key, const char *fallback, struct problems *p,
                     char **ret)
{
    struct str s = str_of(fallback);

    (void)node_str(n, key, p, &s);
    *ret = str_dup(s);
    return *ret ? 0 : -ENOMEM;
}

static int read_sources(struct relabel_rule *rule, const struct node *n, struct problems *p)
{
    const struct node *list = node_given(n, "source_labels");

    if (!list)
        return 0;
    if (list->kind != NODE_LIST || list->n > MAX_SOURCES) {
        node_expected(list, p, "a list of at most %d label names", MAX_SOURCES);
        return 0;
    }
    for (size_t i = 0; i < list->n; i++) {
        if (list->items[i]->kind != NODE_STRING || list->items[i]->text.n == 0) {
            node_expected(list->items[i], p, "a label name");
            continue;
        }
        rule->sources[rule->n_sources] = str_dup(list->items[i]->text);
        if (!rule->sources[rule->n_sources++])
            return -ENOMEM;
    }
    return 0;
}

static void read_action(struct relabel_rule *rule, const struct node *n, struct problems *p)
{
    struct str word = STR("replace");

    if (!node_str(n, "action", p, &word))
        return;
    for (unsigned i = 0; i < ACTIONS; i++)
        if (str_eq_nocase(word, str_of(action_words[i]))) {
            rule->action = (enum action)i;
            return;
        }
    node_expected(node_get(n, "action"), p, "replace, keep, drop, labeldrop, labelkeep or labelmap");
}

/* Anchored at both ends; what the user's groups count starts at 2. */
static int read_regex(struct relabel_rule *rule, const struct node *n, struct problems *p)
{
    struct str s = STR("(.*)");
    const char *problem;
    char *anchored, why[128];
    int r;

    if (!node_str(n, "regex", p, &s))
        return 0;
    problem = relabel_regex_problem(s);
    if (problem) {
        node_problem(node_get(n, "regex"), p, PROBLEM_ERROR, "expected a simpler regular expression: %s",
                     problem);
        return 0;
    }
    if (asprintf(&anchored, "^(%.*s)$", STR_ARG(s)) < 0)
        return -ENOMEM;
    r = regcomp(&rule->regex, anchored, REG_EXTENDED);
    free(anchored);
    rule->has_regex = r == 0;
    if (r == REG_ESPACE)
        return -ENOMEM;
    if (r != 0) {
        (void)regerror(r, &rule->regex, why, sizeof(why));
        node_problem(node_get(n, "regex"), p, PROBLEM_ERROR,
                     "expected a POSIX extended regular expression: %s", why);
    }
    return 0;
}

static int read_rule(struct relabel_rule *rule, const struct node *n, struct problems *p)
{
    int r;

    if (n->kind != NODE_MAP) {
        node_expected(n, p, "an object with source_labels, regex, action and so on");
        return 0;
    }
    node_only_keys(n, keys, PROBLEM_ERROR, p);
    read_action(rule, n, p);
    r = read_sources(rule, n, p) ?: read_regex(rule, n, p) ?: keep_text(n, "separator", ";", p, &rule->separator)
            ?: keep_text(n, "target_label", "", p, &rule->target)
            ?: keep_text(n, "replacement", "$1", p, &rule->replacement);
    if (r == 0 && rule->action == REPLACE && !*rule->target)
        node_missing(n, "target_label", p, "the name of the label to write");
    if ((rule->action == KEEP || rule->action == DROP) && rule->n_sources == 0)
        node_missing(n, "source_labels", p, "the labels to look at");
    return r;
}

int relabel_read(struct relabel_rules *ret, const struct node *list, struct problems *p)
{
    int r = 0;

    if (list->kind != NODE_LIST || list->n > RELABEL_MAX_RULES) {
        node_expected(list, p, "a list of at most %d rules", RELABEL_MAX_RULES);
        return 0;
    }
    ret->list = calloc(list->n + 1, sizeof(*ret->list));
    if (!ret->list)
        return -ENOMEM;
    for (size_t i = 0; i < list->n && r == 0; i++)
        r = read_rule(&ret->list[ret->n++], list->items[i], p);
    return r;
}

void relabel_done(struct relabel_rules *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct relabel_rule *rule = &r->list[i];

        if (rule->has_regex)
            regfree(&rule->regex);
        for (size_t k = 0; k < rule->n_sources; k++)
            free(rule->sources[k]);
        free(rule->separator);
        free(rule->target);
        free(rule->replacement);
    }
    free(r->list);
    *r = (struct relabel_rules){0};
}

/* Text that grows at the end of the list's room. */
struct text {
    struct label_list *l;
    size_t begin;
    bool full;
};

static struct text text_begin(struct label_list *l)
{
    return (struct text){.l = l, .begin = l->used};
}

static void text_put(struct text *t, struct str s)
{
    if (LABEL_ROOM - t->l->used <= s.n) {
        t->full = true;
        return;
    }
    if (s.n)
        memcpy(t->l->room + t->l->used, s.p, s.n);
    t->l->used += s.n;
}

/* Terminated, for regexec(); the terminator is no part of it. */
static struct str text_end(struct text *t)
{
    struct str s = {t->l->room + t->begin, t->l->used - t->begin};

    t->l->room[t->l->used] = '\0';
    t->l->used++;
    return s;
}

static struct label *find(struct label_list *l, struct str name)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->list[i].name, name))
            return &l->list[i];
    return NULL;
}

static int set(struct label_list *l, struct str name, struct str value)
{
    struct label *there = find(l, name);

    if (!there && l->n == LABELS_MAX)
        return -EFBIG;
    if (!there)
        there = &l->list[l->n++];
    *there = (struct label){name, value};
    return 0;
}

static bool matches(const struct relabel_rule *rule, struct str s, regmatch_t groups[MAX_GROUPS + 1])
{
    return regexec(&rule->regex, s.p, MAX_GROUPS + 1, groups, 0) == 0;
}

/* Puts `replacement` with $1, ${1}, ... filled in. Other names of groups, which POSIX has not, are empty, as in Prometheus. */
static void expand(struct text *t, const char *replacement, struct str s,
                   const regmatch_t groups[MAX_GROUPS + 1])
{
    for (const char *p = replacement; *p;) {
        bool brace = p[0] == '$' && p[1] == '{';
        const char *digit = p + 1 + brace;
        unsigned group = (unsigned)(unsigned char)(*p == '$' ? *digit : 0) - '0';

        if (p[0] == '$' && p[1] == '$') {
            text_put(t, STR("$"));
            p += 2;
        } else if (group <= 9 && (!brace || digit[1] == '}')) {
            const regmatch_t *g = &groups[group + (group > 0)];

            if (group < MAX_GROUPS && g->rm_so >= 0)
                text_put(t, (struct str){s.p + g->rm_so, (size_t)(g->rm_eo - g->rm_so)});
            p = digit + 1 + brace;
        } else {
            text_put(t, (struct str){p, 1});
            p++;
        }
    }
}

static int replace(const struct relabel_rule *rule, struct label_list *l, struct str value)
{
    regmatch_t groups[MAX_GROUPS + 1];
    struct text name, to;
    struct str target, result;

    if (!matches(rule, value, groups))
        return 1;
    name = text_begin(l);
    expand(&name, rule->target, value, groups);
    target = text_end(&name);
    to = text_begin(l);
    expand(&to, rule->replacement, value, groups);
    result = text_end(&to);
    return name.full || to.full || set(l, target, result) < 0 ? -EFBIG : 1;
}

/* labeldrop, labelkeep, labelmap: about names. Labels that labelmap adds are not looked at again. */
static int by_names(const struct relabel_rule *rule, struct label_list *l)
{
    size_t n = l->n, kept = 0;

    for (size_t i = 0; i < n; i++) {
        struct label label = l->list[i];
        regmatch_t groups[MAX_GROUPS + 1];
        struct text t = text_begin(l);
        struct str name;
        bool hit;

        text_put(&t, label.name);
        name = text_end(&t);
        hit = !t.full && matches(rule, name, groups);
        if (rule->action != LABELMAP) {
            if (hit == (rule->action == LABELKEEP))
                l->list[kept++] = label;
            continue;
        }
        if (!hit)
            continue;
        t = text_begin(l);
        expand(&t, rule->replacement, name, groups);
        name = text_end(&t);
        if (t.full || set(l, name, label.value) < 0)
            return -EFBIG;
    }
    if (rule->action != LABELMAP)
        l->n = kept;
    return 1;
}

static int apply(const struct relabel_rule *rule, struct label_list *l)
{
    regmatch_t groups[MAX_GROUPS + 1];
    struct text t = text_begin(l);
    struct str value;

    if (rule->action >= LABELDROP)
        return by_names(rule, l);
    for (size_t i = 0; i < rule->n_sources; i++) {
        const struct label *from = find(l, str_of(rule->sources[i]));

        if (i)
            text_put(&t, str_of(rule->separator));
        if (from)
            text_put(&t, from->value);
    }
    value = text_end(&t);
    if (t.full)
        return -EFBIG;
    if (rule->action == REPLACE)
        return replace(rule, l, value);
    return matches(rule, value, groups) == (rule->action == KEEP);
}

int relabel_apply(const struct relabel_rules *r, struct label_list *l)
{
    for (size_t i = 0; i < r->n; i++) {
        int stays = LABEL_ROOM - l->used > LABEL_ROOM / 4 ? apply(&r->list[i], l) : -EFBIG;

        if (stays <= 0)
            return stays;
    }
    return 1;
}
