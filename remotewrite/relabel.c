/* Owns the rules of `write_relabel_configs`: reads them, on the agent's loop, and applies them to the
 * labels of one series, on the endpoint's thread. They behave as in Prometheus; remotewrite/README.md lists
 * the differences. A match of a regex has limits, so that no rule holds up the thread. */
#include "remotewrite/relabel.h"

#include "exporter/base/arena.h"
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/regex.h"

#include <endian.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <inttypes.h>

enum { RELABEL_MAX_RULES = 64, RELABEL_MAX_SOURCES = 32 };

enum relabel_action {
    RELABEL_REPLACE,
    RELABEL_HASHMOD,
    RELABEL_LOWERCASE,
    RELABEL_UPPERCASE,
    RELABEL_KEEPEQUAL,
    RELABEL_DROPEQUAL,
    RELABEL_KEEP,
    RELABEL_DROP,
    RELABEL_LABELDROP,
    RELABEL_LABELKEEP,
    RELABEL_LABELMAP,
    RELABEL_ACTIONS
};

struct relabel_rule {
    enum relabel_action action;
    struct regex *regex;
    char *sources[RELABEL_MAX_SOURCES];
    size_t n_sources;
    int64_t modulus;
    char *separator, *target, *replacement;
};

/* ---- Names ---- */

static bool is_name_with(struct str s, const char *others)
{
    return s.n && str_has_only(s, others) && !(s.p[0] >= '0' && s.p[0] <= '9');
}

bool label_is_name(struct str s)
{
    return is_name_with(s, "_");
}

bool label_is_metric_name(struct str s)
{
    return is_name_with(s, "_:");
}

/* ---- Reading `write_relabel_configs` ---- */

static const char *const action_words[RELABEL_ACTIONS + 1] = {
    [RELABEL_REPLACE] = "replace",     [RELABEL_HASHMOD] = "hashmod",     [RELABEL_LOWERCASE] = "lowercase",
    [RELABEL_UPPERCASE] = "uppercase", [RELABEL_KEEPEQUAL] = "keepequal", [RELABEL_DROPEQUAL] = "dropequal",
    [RELABEL_KEEP] = "keep",           [RELABEL_DROP] = "drop",           [RELABEL_LABELDROP] = "labeldrop",
    [RELABEL_LABELKEEP] = "labelkeep", [RELABEL_LABELMAP] = "labelmap",
};

static bool action_is_about_names(enum relabel_action a)
{
    return a == RELABEL_LABELDROP || a == RELABEL_LABELKEEP || a == RELABEL_LABELMAP;
}

static bool action_filters(enum relabel_action a)
{
    return a == RELABEL_KEEP || a == RELABEL_DROP;
}

/* Sets the target label, or compares with it. */
static bool action_has_target(enum relabel_action a)
{
    return !action_is_about_names(a) && !action_filters(a);
}

static const char *const rule_keys[] = {"source_labels", "separator",   "target_label", "regex",
                                        "modulus",       "replacement", "action",       NULL};

static char *rule_read_text(const struct node *n, const char *key, const char *fallback, struct problems *p,
                            struct arena *a)
{
    struct str s = str_of(fallback);

    (void)node_str(n, key, p, &s);
    return arena_text(a, s);
}

static void rule_read_sources(struct relabel_rule *rule, const struct node *n, struct problems *p,
                              struct arena *a)
{
    const struct node *list = node_given(n, "source_labels");

    if (list && (list->kind != NODE_LIST || list->n > RELABEL_MAX_SOURCES)) {
        node_expected(list, p, "a list of at most %d label names", RELABEL_MAX_SOURCES);
        return;
    }
    for (size_t i = 0; list && i < list->n; i++)
        if (list->items[i]->kind != NODE_STRING || list->items[i]->text.n == 0)
            node_expected(list->items[i], p, "a label name");
        else
            rule->sources[rule->n_sources++] = arena_text(a, list->items[i]->text);
}

/* That of `replace` is a template. */
static void rule_check_target(const struct relabel_rule *rule, const struct node *n, struct problems *p)
{
    if (!*rule->target)
        node_missing(n, "target_label", p, "the label to set or to compare with");
    else if (rule->action != RELABEL_REPLACE && !label_is_name(str_of(rule->target)))
        node_expected(node_get(n, "target_label"), p, "a label name");
}

static void rule_read(struct relabel_rule *rule, const struct node *n, struct problems *p, struct arena *a)
{
    struct str regex = STR("(.*)");
    char why[REGEX_WHY_BYTES];

    if (n->kind != NODE_MAP) {
        node_expected(n, p, "a rule: an object with source_labels, regex, ...");
        return;
    }
    node_only_keys(n, rule_keys, PROBLEM_ERROR, p);
    rule->action = (enum relabel_action)node_choice(n, "action", p, action_words);
    rule_read_sources(rule, n, p, a);
    if (node_str(n, "regex", p, &regex) && regex_new(&rule->regex, regex, why) < 0)
        node_problem(node_get(n, "regex"), p, PROBLEM_ERROR, "expected a regular expression: %s", why);
    rule->separator = rule_read_text(n, "separator", ";", p, a);
    rule->target = rule_read_text(n, "target_label", "", p, a);
    rule->replacement = rule_read_text(n, "replacement", "$1", p, a);
    (void)node_int(n, "modulus", p, 1, INT64_MAX, &rule->modulus);
    if (action_has_target(rule->action))
        rule_check_target(rule, n, p);
    if (rule->action == RELABEL_HASHMOD && !rule->modulus)
        node_missing(n, "modulus", p, "the number of hash values");
    if (action_filters(rule->action) && rule->n_sources == 0)
        node_missing(n, "source_labels", p, "the labels to match");
}

void relabel_read(struct relabel_rules *ret, const struct node *list, struct problems *p, struct arena *a)
{
    if (list->kind != NODE_LIST || list->n > RELABEL_MAX_RULES) {
        node_expected(list, p, "a list of at most %d rules", RELABEL_MAX_RULES);
        return;
    }
    ret->list = arena_alloc(a, list->n * sizeof(*ret->list));
    memset(ret->list, 0, list->n * sizeof(*ret->list));
    for (size_t i = 0; i < list->n; i++)
        rule_read(&ret->list[ret->n++], list->items[i], p, a);
}

void relabel_done(struct relabel_rules *r)
{
    for (size_t i = 0; i < r->n; i++)
        (void)regex_free(r->list[i].regex);
}

/* ---- The labels of one series ---- */

struct label *label_list_find(struct label_list *l, struct str name)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->list[i].name, name))
            return &l->list[i];
    return NULL;
}

int label_list_add(struct label_list *l, struct str name, struct str value)
{
    if (value.n == 0)
        return 0;
    if (l->n == LABELS_MAX)
        return -EFBIG;
    l->list[l->n++] = (struct label){name, value};
    return 0;
}

/* The others keep their order. */
static void label_list_remove(struct label_list *l, struct label *label)
{
    size_t after = (size_t)(&l->list[l->n] - label) - 1;

    memmove(label, label + 1, after * sizeof(*label));
    l->n--;
}

static int label_list_set(struct label_list *l, struct str name, struct str value)
{
    struct label *label = label_list_find(l, name);

    if (!label)
        return label_list_add(l, name, value);
    if (value.n == 0)
        label_list_remove(l, label);
    else
        *label = (struct label){name, value};
    return 0;
}

/* ---- Relabelling ---- */

/* The text since `begin`. */
static struct str room_text(const struct label_list *l, size_t begin)
{
    return (struct str){l->room.p + begin, l->room.n - begin};
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

/* Reads `$name` or `${name}` at p. Returns its end, or NULL if p is just a dollar sign. */
static const char *read_variable(const char *p, struct str *ret_name)
{
    bool brace = p[1] == '{';
    const char *end;

    ret_name->p = end = p + 1 + brace;
    while (is_name_char(*end))
        end++;
    ret_name->n = (size_t)(end - ret_name->p);
    if (ret_name->n == 0 || (brace && *end != '}'))
        return NULL;
    return end + brace;
}

/* Puts the template with the groups of the last match filled in, by the rules of Go's regexp.Expand: `$$`
 * is a dollar sign, `$name` takes as many letters, digits and underscores as it can, and an unknown group
 * is empty. */
static int labels_expand(struct label_list *l, const char *template)
{
    while (*template && buf_failed(&l->room) == 0) {
        size_t plain = strcspn(template, "$");
        const char *end;
        struct str name;

        buf_put(&l->room, template, plain);
        template += plain;
        if (!*template)
            break;
        end = read_variable(template, &name);
        buf_put_str(&l->room, end ? regex_group(l->matcher, name) : STR("$"));
        template = end ? end : template + 1 + (template[1] == '$');
    }
    return buf_failed(&l->room);
}

/* What follows returns 0 if the series is kept, 1 if the rule drops it. -EFBIG for too many or too long
 * labels, -ELOOP if an expression exceeds its limits, -EINVAL for labels that are not UTF-8. `text` is that
 * of the source labels. */

static int apply_replace(const struct relabel_rule *rule, struct label_list *l, struct str text)
{
    int r = regex_match(l->matcher, rule->regex, text);
    size_t begin = l->room.n;
    struct str name;

    if (r <= 0)
        return r;
    r = labels_expand(l, rule->target);
    name = room_text(l, begin);
    if (r < 0 || name.n == 0) /* Prometheus skips a rule whose target expands to no label name */
        return r;
    begin = l->room.n;
    r = labels_expand(l, rule->replacement);
    return r ?: label_list_set(l, name, room_text(l, begin));
}

/* Sets the target to the hash that Prometheus takes. */
static int apply_hashmod(const struct relabel_rule *rule, struct label_list *l, struct str text)
{
    size_t begin = l->room.n;
    uint64_t md5[2];

    if (gnutls_hash_fast(GNUTLS_DIG_MD5, text.p, text.n, md5) < 0)
        return -EINVAL;
    buf_printf(&l->room, "%" PRIu64, be64toh(md5[1]) % (uint64_t)rule->modulus);
    if (buf_failed(&l->room) < 0)
        return buf_failed(&l->room);
    return label_list_set(l, str_of(rule->target), room_text(l, begin));
}

static int apply_case(const struct relabel_rule *rule, struct label_list *l, struct str text)
{
    size_t begin = l->room.n;
    int r = regex_change_case(text, rule->action == RELABEL_UPPERCASE, &l->room);

    return r ?: label_list_set(l, str_of(rule->target), room_text(l, begin));
}

/* keepequal, dropequal. */
static int apply_compare(const struct relabel_rule *rule, struct label_list *l, struct str text)
{
    const struct label *label = label_list_find(l, str_of(rule->target));
    bool is_equal = str_eq(text, label ? label->value : STR(""));

    return is_equal != (rule->action == RELABEL_KEEPEQUAL);
}

/* keep, drop. */
static int apply_filter(const struct relabel_rule *rule, struct label_list *l, struct str text)
{
    int r = regex_match(l->matcher, rule->regex, text);

    if (r < 0)
        return r;
    return r != (rule->action == RELABEL_KEEP);
}

/* labeldrop, labelkeep. */
static int apply_to_names(const struct relabel_rule *rule, struct label_list *l)
{
    size_t kept = 0;

    for (size_t i = 0; i < l->n; i++) {
        struct label label = l->list[i];
        int r = regex_match(l->matcher, rule->regex, label.name);

        if (r < 0)
            return r;
        if (r == (rule->action == RELABEL_LABELKEEP))
            l->list[kept++] = label;
    }
    l->n = kept;
    return 0;
}

/* Labels that it adds are not matched again. */
static int apply_labelmap(const struct relabel_rule *rule, struct label_list *l)
{
    size_t n = l->n;

    for (size_t i = 0; i < n; i++) {
        struct label label = l->list[i];
        size_t begin = l->room.n;
        int r = regex_match(l->matcher, rule->regex, label.name);

        if (r > 0)
            r = labels_expand(l, rule->replacement) ?: label_list_set(l, room_text(l, begin), label.value);
        if (r < 0)
            return r;
    }
    return 0;
}

static int (*const apply_to_text[RELABEL_ACTIONS])(const struct relabel_rule *, struct label_list *,
                                                   struct str) = {
    [RELABEL_REPLACE] = apply_replace,   [RELABEL_HASHMOD] = apply_hashmod,
    [RELABEL_LOWERCASE] = apply_case,    [RELABEL_UPPERCASE] = apply_case,
    [RELABEL_KEEPEQUAL] = apply_compare, [RELABEL_DROPEQUAL] = apply_compare,
    [RELABEL_KEEP] = apply_filter,       [RELABEL_DROP] = apply_filter,
};

/* The values of the source labels; no value for one that is missing. */
static int rule_source_text(const struct relabel_rule *rule, struct label_list *l, struct str *ret)
{
    size_t begin = l->room.n;

    for (size_t i = 0; i < rule->n_sources; i++) {
        const struct label *label = label_list_find(l, str_of(rule->sources[i]));

        if (i > 0)
            buf_puts(&l->room, rule->separator);
        if (label)
            buf_put_str(&l->room, label->value);
    }
    *ret = room_text(l, begin);
    return buf_failed(&l->room);
}

static int apply_rule(const struct relabel_rule *rule, struct label_list *l)
{
    struct str text;
    int r;

    if (rule->action == RELABEL_LABELMAP)
        return apply_labelmap(rule, l);
    if (action_is_about_names(rule->action))
        return apply_to_names(rule, l);
    r = rule_source_text(rule, l, &text);
    return r < 0 ? r : apply_to_text[rule->action](rule, l, text);
}

int relabel_apply(const struct relabel_rules *rules, struct label_list *l)
{
    int r = 0;

    for (size_t i = 0; i < rules->n && r == 0; i++)
        r = apply_rule(&rules->list[i], l);
    return r;
}
