/* Applying relabelling rules to the labels of a series. */
#include "remotewrite/relabel.h"

#include "exporter/base/regex.h"
#include "remotewrite/relabel_rule.h"

#include <errno.h>

/* Text that grows at the end of the list's room. */
struct label_text {
    struct label_list *l;
    size_t begin;
    bool full;
};

static struct label_text text_begin(struct label_list *l)
{
    return (struct label_text){.l = l, .begin = l->used};
}

static void text_put(struct label_text *t, struct str s)
{
    if (LABEL_ROOM - t->l->used < s.n) {
        t->full = true;
        return;
    }
    if (s.n)
        memcpy(t->l->room + t->l->used, s.p, s.n);
    t->l->used += s.n;
}

static struct str text_end(const struct label_text *t)
{
    return (struct str){t->l->room + t->begin, t->l->used - t->begin};
}

struct label *label_list_find(struct label_list *l, struct str name)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->list[i].name, name))
            return &l->list[i];
    return NULL;
}

static int label_set(struct label_list *l, struct str name, struct str value)
{
    struct label *label = label_list_find(l, name);

    if (!label && l->n == LABELS_MAX)
        return -EFBIG;
    if (!label)
        label = &l->list[l->n++];
    *label = (struct label){name, value};
    return 0;
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
static void text_expand(struct label_text *t, const char *template)
{
    while (*template) {
        size_t plain = strcspn(template, "$");
        const char *end;
        struct str name;

        text_put(t, (struct str){template, plain});
        template += plain;
        if (!*template)
            return;
        end = read_variable(template, &name);
        if (end)
            text_put(t, regex_group(t->l->matcher, name));
        else
            text_put(t, STR("$"));
        template = end ? end : template + 1 + (template[1] == '$');
    }
}

static int apply_replace(const struct relabel_rule *rule, struct label_list *l)
{
    struct label_text text = text_begin(l);
    struct str name, value;

    text_expand(&text, rule->target);
    name = text_end(&text);
    if (name.n == 0) /* Prometheus skips a rule whose target expands to no label name */
        return text.full ? -EFBIG : 1;
    text.begin = l->used;
    text_expand(&text, rule->replacement);
    value = text_end(&text);
    return text.full || label_set(l, name, value) < 0 ? -EFBIG : 1;
}

/* labeldrop, labelkeep, labelmap. Labels that labelmap adds are not matched again. */
static int apply_to_names(const struct relabel_rule *rule, struct label_list *l)
{
    size_t n = l->n, kept = 0;

    for (size_t i = 0; i < n; i++) {
        struct label label = l->list[i];
        struct label_text text = text_begin(l);
        int match = regex_match(l->matcher, rule->regex, label.name);

        if (match < 0)
            return match;
        if (rule->action != RELABEL_LABELMAP && match == (rule->action == RELABEL_LABELKEEP))
            l->list[kept++] = label;
        if (rule->action != RELABEL_LABELMAP || !match)
            continue;
        text_expand(&text, rule->replacement);
        if (text.full || label_set(l, text_end(&text), label.value) < 0)
            return -EFBIG;
    }
    if (rule->action != RELABEL_LABELMAP)
        l->n = kept;
    return 1;
}

static int apply_rule(const struct relabel_rule *rule, struct label_list *l)
{
    struct label_text text = text_begin(l);
    int match;

    if (rule->action >= RELABEL_LABELDROP)
        return apply_to_names(rule, l);
    for (size_t i = 0; i < rule->n_sources; i++) {
        const struct label *source = label_list_find(l, str_of(rule->sources[i]));

        if (i)
            text_put(&text, str_of(rule->separator));
        if (source)
            text_put(&text, source->value);
    }
    if (text.full)
        return -EFBIG;
    match = regex_match(l->matcher, rule->regex, text_end(&text));
    if (match < 0)
        return match;
    if (rule->action == RELABEL_REPLACE)
        return match ? apply_replace(rule, l) : 1;
    return match == (rule->action == RELABEL_KEEP);
}

int relabel_apply(const struct relabel_rules *r, struct label_list *l)
{
    int kept = 1;

    for (size_t i = 0; i < r->n && kept == 1; i++)
        kept = apply_rule(&r->list[i], l);
    return kept;
}
