/* Reading `write_relabel_configs`. */
#include "remotewrite/relabel.h"

#include "exporter/base/regex.h"
#include "remotewrite/relabel_rule.h"

#include <errno.h>

static const char *const action_words[RELABEL_ACTIONS] = {
    [RELABEL_REPLACE] = "replace",     [RELABEL_KEEP] = "keep",           [RELABEL_DROP] = "drop",
    [RELABEL_LABELDROP] = "labeldrop", [RELABEL_LABELKEEP] = "labelkeep", [RELABEL_LABELMAP] = "labelmap",
};

static const char *const rule_keys[] = {"source_labels", "separator", "target_label", "regex", "replacement",
                                        "action",        NULL};

static int rule_read_text(const struct node *n, const char *key, const char *fallback, struct problems *p,
                          char **ret)
{
    struct str s = str_of(fallback);

    (void)node_str(n, key, p, &s);
    *ret = str_dup(s);
    return *ret ? 0 : -ENOMEM;
}

static int rule_read_sources(struct relabel_rule *rule, const struct node *n, struct problems *p)
{
    const struct node *list = node_given(n, "source_labels");

    if (!list)
        return 0;
    if (list->kind != NODE_LIST || list->n > RELABEL_MAX_SOURCES) {
        node_expected(list, p, "a list of at most %d label names", RELABEL_MAX_SOURCES);
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

static void rule_read_action(struct relabel_rule *rule, const struct node *n, struct problems *p)
{
    struct str word = STR("replace");

    if (!node_str(n, "action", p, &word))
        return;
    for (unsigned i = 0; i < RELABEL_ACTIONS; i++)
        if (str_eq_nocase(word, str_of(action_words[i]))) {
            rule->action = (enum relabel_action)i;
            return;
        }
    node_expected(node_get(n, "action"), p, "replace, keep, drop, labeldrop, labelkeep or labelmap");
}

static int rule_read_regex(struct relabel_rule *rule, const struct node *n, struct problems *p)
{
    struct str s = STR("(.*)");
    char why[REGEX_WHY_BYTES];
    int r;

    if (!node_str(n, "regex", p, &s))
        return 0;
    r = regex_new(&rule->regex, s, why);
    if (r == -EINVAL)
        node_problem(node_get(n, "regex"), p, PROBLEM_ERROR, "expected a regular expression: %s", why);
    return r == -EINVAL ? 0 : r;
}

static int rule_read(struct relabel_rule *rule, const struct node *n, struct problems *p)
{
    int r;

    if (n->kind != NODE_MAP) {
        node_expected(n, p, "a rule: an object with source_labels, regex, ...");
        return 0;
    }
    node_only_keys(n, rule_keys, PROBLEM_ERROR, p);
    rule_read_action(rule, n, p);
    r = rule_read_sources(rule, n, p) ?: rule_read_regex(rule, n, p);
    r = r ?: rule_read_text(n, "separator", ";", p, &rule->separator);
    r = r ?: rule_read_text(n, "target_label", "", p, &rule->target);
    r = r ?: rule_read_text(n, "replacement", "$1", p, &rule->replacement);
    if (r == 0 && rule->action == RELABEL_REPLACE && !*rule->target)
        node_missing(n, "target_label", p, "the label to set");
    if ((rule->action == RELABEL_KEEP || rule->action == RELABEL_DROP) && rule->n_sources == 0)
        node_missing(n, "source_labels", p, "the labels to match");
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
        r = rule_read(&ret->list[ret->n++], list->items[i], p);
    return r;
}

void relabel_done(struct relabel_rules *r)
{
    for (size_t i = 0; i < r->n; i++) {
        struct relabel_rule *rule = &r->list[i];

        rule->regex = regex_free(rule->regex);
        for (size_t k = 0; k < rule->n_sources; k++)
            free(rule->sources[k]);
        free(rule->separator);
        free(rule->target);
        free(rule->replacement);
    }
    free(r->list);
    *r = (struct relabel_rules){0};
}
