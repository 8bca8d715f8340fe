#include "remotewrite/labels.h"

#include "exporter/base/alloc.h"
#include "exporter/base/arena.h"
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/regex.h"
#include "exporter/base/strset.h"
#include "exporter/num/num.h"
#include "remotewrite/config.h"
#include "remotewrite/format.h"

#include <endian.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <inttypes.h>
#include <stdio.h>

enum { LABEL_ROOM = 1 << 20, RELABEL_MAX_RULES = 64, RELABEL_MAX_SOURCES = 32 };
/* Fields of prometheus.TimeSeries and prometheus.Label. */
enum { TIMESERIES_LABELS = 1, LABEL_NAME = 1, LABEL_VALUE = 2 };

enum relabel_action {
    RELABEL_REPLACE, /* this one and those below need a target label */
    RELABEL_HASHMOD,
    RELABEL_LOWERCASE,
    RELABEL_UPPERCASE,
    RELABEL_KEEPEQUAL,
    RELABEL_DROPEQUAL,
    RELABEL_KEEP, /* needs source labels */
    RELABEL_DROP,
    RELABEL_LABELDROP, /* this one and those below are about label names */
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

/* ---- Type and help ---- */

void families_done(struct families *f)
{
    for (size_t i = 0; i < f->names.n; i++)
        free(f->list[i]);
    strset_done(&f->names);
}

const struct family *families_find(const struct families *f, struct str name)
{
    size_t i = strset_find(&f->names, name);

    return i == SIZE_MAX ? NULL : f->list[i];
}

void families_note(struct families *f, struct str name, const char *suffix, enum metric_type type,
                   const char *help)
{
    size_t i = strset_find(&f->names, name), n = strlen(suffix);
    struct family *one = i == SIZE_MAX ? NULL : f->list[i];
    bool ends = name.n > n && memcmp(name.p + name.n - n, suffix, n) == 0;

    if (one && one->type == type && one->help == help)
        return;
    if (!one && (name.n == 0 || name.n > FAMILY_NAME_MAX || f->names.n >= FAMILIES_MAX))
        return;
    if (!one) {
        one = xcalloc(1, sizeof(*one) + name.n + 1);
        memcpy(one->name, name.p, name.n);
        f->list[strset_add(&f->names, (struct str){one->name, name.n})] = one;
    }
    one->type = type;
    one->help = help;
    one->stem_n = ends ? name.n - n : name.n;
}

/* ---- Reading `write_relabel_configs` ---- */

static const char *const action_words[RELABEL_ACTIONS + 1] = {
    [RELABEL_REPLACE] = "replace",     [RELABEL_HASHMOD] = "hashmod",     [RELABEL_LOWERCASE] = "lowercase",
    [RELABEL_UPPERCASE] = "uppercase", [RELABEL_KEEPEQUAL] = "keepequal", [RELABEL_DROPEQUAL] = "dropequal",
    [RELABEL_KEEP] = "keep",           [RELABEL_DROP] = "drop",           [RELABEL_LABELDROP] = "labeldrop",
    [RELABEL_LABELKEEP] = "labelkeep", [RELABEL_LABELMAP] = "labelmap",
};

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
    if (rule->action < RELABEL_KEEP && !*rule->target)
        node_missing(n, "target_label", p, "the label to set or to compare with");
    else if (rule->action < RELABEL_KEEP && rule->action != RELABEL_REPLACE &&
             !label_is_name(str_of(rule->target), false))
        node_expected(node_get(n, "target_label"), p, "a label name");
    if (rule->action == RELABEL_HASHMOD && !rule->modulus)
        node_missing(n, "modulus", p, "the number of hash values");
    if ((rule->action == RELABEL_KEEP || rule->action == RELABEL_DROP) && rule->n_sources == 0)
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

struct label_maker {
    const struct rw_endpoint_config *config;
    /* Of one series: unique names in any order. An empty value is no label, before and after each rule. Text
     * made on the way is stored in `room`, LABEL_ROOM bytes that do not move. */
    struct label list[LABELS_MAX];
    size_t n;
    struct buf room;
    struct regex_matcher *matcher;
    struct str bad_name;     /* the invalid name, if -EINVAL is about one */
    struct label_bytes *out; /* all series so far */
    size_t cap;              /* series for which there is room */
};

static struct label *label_list_find(struct label_maker *m, struct str name)
{
    for (size_t i = 0; i < m->n; i++)
        if (str_eq(m->list[i].name, name))
            return &m->list[i];
    return NULL;
}

static int label_list_add(struct label_maker *m, struct str name, struct str value)
{
    if (value.n == 0)
        return 0;
    if (m->n == LABELS_MAX)
        return -EFBIG;
    m->list[m->n++] = (struct label){name, value};
    return 0;
}

/* The others keep their order. */
static void label_list_remove(struct label_maker *m, struct label *label)
{
    size_t after = (size_t)(&m->list[m->n] - label) - 1;

    memmove(label, label + 1, after * sizeof(*label));
    m->n--;
}

static int label_list_set(struct label_maker *m, struct str name, struct str value)
{
    struct label *label = label_list_find(m, name);

    if (!label)
        return label_list_add(m, name, value);
    if (value.n == 0)
        label_list_remove(m, label);
    else
        *label = (struct label){name, value};
    return 0;
}

/* ---- Relabelling ---- */

/* The text since `begin`. */
static struct str room_text(const struct label_maker *m, size_t begin)
{
    return (struct str){m->room.p + begin, m->room.n - begin};
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
static int labels_expand(struct label_maker *m, const char *template)
{
    while (*template && buf_failed(&m->room) == 0) {
        size_t plain = strcspn(template, "$");
        const char *end;
        struct str name;

        buf_put(&m->room, template, plain);
        template += plain;
        if (!*template)
            break;
        end = read_variable(template, &name);
        buf_put_str(&m->room, end ? regex_group(m->matcher, name) : STR("$"));
        template = end ? end : template + 1 + (template[1] == '$');
    }
    return buf_failed(&m->room);
}

static int apply_replace(const struct relabel_rule *rule, struct label_maker *m)
{
    size_t begin = m->room.n;
    int r = labels_expand(m, rule->target);
    struct str name = room_text(m, begin);

    if (r < 0 || name.n == 0) /* Prometheus skips a rule whose target expands to no label name */
        return r;
    begin = m->room.n;
    r = labels_expand(m, rule->replacement);
    return r ?: label_list_set(m, name, room_text(m, begin));
}

/* labeldrop, labelkeep, labelmap. Labels that labelmap adds are not matched again. */
static int apply_to_names(const struct relabel_rule *rule, struct label_maker *m)
{
    size_t n = m->n, kept = 0;

    for (size_t i = 0; i < n; i++) {
        struct label label = m->list[i];
        size_t begin = m->room.n;
        int r = regex_match(m->matcher, rule->regex, label.name);

        if (r >= 0 && rule->action != RELABEL_LABELMAP && r == (rule->action == RELABEL_LABELKEEP))
            m->list[kept++] = label;
        if (r > 0 && rule->action == RELABEL_LABELMAP)
            r = labels_expand(m, rule->replacement) ?: label_list_set(m, room_text(m, begin), label.value);
        if (r < 0)
            return r;
    }
    if (rule->action != RELABEL_LABELMAP)
        m->n = kept;
    return 0;
}

/* Sets the target to the hash that Prometheus takes, or to the text in lower or upper case. */
static int apply_function(const struct relabel_rule *rule, struct label_maker *m, struct str text)
{
    size_t begin = m->room.n;
    uint64_t md5[2];
    int r;

    if (rule->action != RELABEL_HASHMOD) {
        r = regex_change_case(text, rule->action == RELABEL_UPPERCASE, &m->room);
    } else if (gnutls_hash_fast(GNUTLS_DIG_MD5, text.p, text.n, md5) < 0) {
        r = -EINVAL;
    } else {
        buf_printf(&m->room, "%" PRIu64, be64toh(md5[1]) % (uint64_t)rule->modulus);
        r = buf_failed(&m->room);
    }
    return r ?: label_list_set(m, str_of(rule->target), room_text(m, begin));
}

/* 0 if the series is kept, 1 if the rule drops it. -EFBIG for too many or too long labels, -ELOOP if an
 * expression exceeds its limits, -EINVAL for labels that are not UTF-8. */
static int apply_rule(const struct relabel_rule *rule, struct label_maker *m)
{
    size_t begin = m->room.n;
    const struct label *label;
    struct str text;
    int r;

    if (rule->action >= RELABEL_LABELDROP)
        return apply_to_names(rule, m);
    for (size_t i = 0; i < rule->n_sources; i++) {
        label = label_list_find(m, str_of(rule->sources[i]));
        if (i > 0)
            buf_puts(&m->room, rule->separator);
        if (label)
            buf_put_str(&m->room, label->value);
    }
    text = room_text(m, begin);
    r = buf_failed(&m->room);
    if (r < 0)
        return r;
    if (rule->action == RELABEL_KEEPEQUAL || rule->action == RELABEL_DROPEQUAL) {
        label = label_list_find(m, str_of(rule->target));
        return str_eq(text, label ? label->value : STR("")) != (rule->action == RELABEL_KEEPEQUAL);
    }
    if (rule->action != RELABEL_REPLACE && rule->action < RELABEL_KEEP)
        return apply_function(rule, m, text);
    r = regex_match(m->matcher, rule->regex, text);
    if (r < 0)
        return r;
    if (rule->action == RELABEL_REPLACE)
        return r ? apply_replace(rule, m) : 0;
    return r != (rule->action == RELABEL_KEEP);
}

/* ---- Encoding ---- */

/* Sorts by name and removes empty values. -EINVAL for a repeated or empty name, or without a metric name. */
static int labels_normalize(struct label_maker *m)
{
    size_t n = 0;
    bool named = false;

    for (size_t i = 0; i < m->n; i++) {
        struct label label = m->list[i];
        size_t k = n;
        int order = -1;

        if (label.value.n == 0)
            continue;
        for (; k && (order = str_cmp(m->list[k - 1].name, label.name)) > 0; k--)
            m->list[k] = m->list[k - 1];
        if (order == 0 || label.name.n == 0)
            return -EINVAL;
        named = named || str_eq(label.name, STR("__name__"));
        m->list[k] = label;
        n++;
    }
    m->n = n;
    return named ? 0 : -EINVAL;
}

bool label_is_name(struct str s, bool metric)
{
    return s.n && str_has_only(s, metric ? "_:" : "_") && !(s.p[0] >= '0' && s.p[0] <= '9');
}

/* The names that 1.0 requires. 2.0 only recommends them, but a record may be sent in either. -EINVAL. */
static int labels_check_names(struct label_maker *m)
{
    for (size_t i = 0; i < m->n; i++) {
        bool metric = str_eq(m->list[i].name, STR("__name__"));

        m->bad_name = metric ? m->list[i].value : m->list[i].name;
        if (!label_is_name(m->bad_name, metric))
            return -EINVAL;
    }
    m->bad_name = STR("");
    return 0;
}

/* Encodes the labels that are not empty. */
static int labels_encode(struct label_maker *m)
{
    struct buf *bytes = &m->out->bytes;
    size_t room = 0;
    char *p;

    for (size_t i = 0; i < m->n; i++)
        room += 3 * (1 + VARINT_MAX) + m->list[i].name.n + m->list[i].value.n;
    if (buf_reserve(bytes, room, &p) < 0)
        return -EFBIG;
    for (size_t i = 0; i < m->n; i++) {
        struct str name = m->list[i].name, value = m->list[i].value;

        if (value.n == 0)
            continue;
        p = put_tag(p, TIMESERIES_LABELS, 2 + varint_size(name.n) + name.n + varint_size(value.n) + value.n);
        p = mempcpy(put_tag(p, LABEL_NAME, name.n), name.p, name.n);
        p = mempcpy(put_tag(p, LABEL_VALUE, value.n), value.p, value.n);
    }
    bytes->n = (size_t)(p - bytes->p);
    return 0;
}

struct label_bytes *label_bytes_free(struct label_bytes *l)
{
    if (!l)
        return NULL;
    buf_done(&l->bytes);
    free(l->at);
    free(l->series);
    free(l);
    return NULL;
}

void label_bytes_distil(struct label_bytes *l, const struct label_bytes *not_in)
{
    CLEANUP(strset_done) struct strset seen = {0};
    size_t n = 0;

    for (size_t i = 0; not_in && i < not_in->n; i++)
        (void)strset_add(&seen, label_bytes_at(not_in, i));
    for (size_t i = 0; i < l->n; i++) {
        struct str labels = label_bytes_at(l, i), to = {l->bytes.p + l->at[n], labels.n};

        if (strset_find(&seen, labels) != SIZE_MAX)
            continue;
        memmove(l->bytes.p + l->at[n], labels.p, labels.n);
        (void)strset_add(&seen, to);
        if (l->series)
            l->series[n] = l->series[i];
        l->at[n + 1] = l->at[n] + labels.n;
        n++;
    }
    l->n = n;
    buf_truncate(&l->bytes, n ? l->at[n] : 0);
}

/* ---- Making label bytes ---- */

struct label_maker *label_maker_new(const struct rw_endpoint_config *c)
{
    struct label_maker *m = xmalloc(sizeof(*m));

    m->config = c;
    buf_init(&m->room, LABEL_ROOM);
    m->out = xcalloc(1, sizeof(*m->out));
    buf_init(&m->out->bytes, LABEL_BYTES_MAX);
    m->cap = 0;
    m->matcher = regex_matcher_new();
    buf_expect(&m->room, LABEL_ROOM);
    return m;
}

struct label_maker *label_maker_free(struct label_maker *m)
{
    if (!m)
        return NULL;
    buf_done(&m->room);
    (void)regex_matcher_free(m->matcher);
    (void)label_bytes_free(m->out);
    free(m);
    return NULL;
}

/* Fills the list with the labels of a series, relabels, checks and sorts it: 0, or 1 if a rule drops the
 * series. -EINVAL for invalid labels, -ELOOP if an expression exceeds its limits, -EFBIG. */
static int label_maker_list(struct label_maker *m, const struct label *labels, size_t n)
{
    const struct rw_endpoint_config *c = m->config;
    int r = 0;

    m->n = 0;
    buf_clear(&m->room);
    m->bad_name = STR("");
    for (size_t i = 0; i < n && r == 0; i++)
        r = label_list_add(m, labels[i].name, labels[i].value);
    /* A label of the series overrides an external one of the same name. */
    for (size_t i = 0; i < c->n_external_labels && r == 0; i++)
        if (!label_list_find(m, c->external_labels[i].name))
            r = label_list_add(m, c->external_labels[i].name, c->external_labels[i].value);
    for (size_t i = 0; i < c->relabel.n && r == 0; i++)
        r = apply_rule(&c->relabel.list[i], m);
    r = r ?: labels_normalize(m);
    return r == 0 && c->relabel.n ? labels_check_names(m) : r;
}

/* Adds the prepared list if r, the result of label_maker_list(), is 0; counts errors. */
static bool label_maker_put(struct label_maker *m, int r, uint32_t series)
{
    struct label_bytes *out = m->out;

    r = r ?: labels_encode(m);
    out->over_limit += r == -ELOOP;
    out->invalid += r < 0 && r != -ELOOP;
    if (r < 0 && !*out->bad_name)
        (void)snprintf(out->bad_name, sizeof(out->bad_name), "%.*s", STR_ARG(m->bad_name));
    if (r != 0)
        return false;
    if (out->n == m->cap) {
        m->cap = size_max(256, m->cap * 2);
        out->at = xreallocarray(out->at, m->cap + 1, sizeof(out->at[0]));
        out->at[0] = 0;
        out->series = xreallocarray(out->series, m->cap, sizeof(out->series[0]));
    }
    out->series[out->n++] = series;
    out->at[out->n] = out->bytes.n;
    return true;
}

bool label_maker_add(struct label_maker *m, const struct label *labels, size_t n, uint32_t series)
{
    return label_maker_put(m, label_maker_list(m, labels, n), series);
}

struct str label_maker_name(struct label_maker *m)
{
    return label_list_find(m, STR("__name__"))->value;
}

struct label_bytes *label_maker_end(struct label_maker *m)
{
    buf_shrink(&m->out->bytes);
    /* Rules may merge series. The first is kept: two samples with one timestamp contradict each other. */
    if (m->config->relabel.n) {
        size_t before = m->out->n;

        label_bytes_distil(m->out, NULL);
        m->out->merged += before - m->out->n;
    }
    return TAKE_PTR(m->out);
}

/* Empty without an external label of this name. */
static struct str config_external(const struct rw_endpoint_config *c, struct str name)
{
    for (size_t i = 0; i < c->n_external_labels; i++)
        if (str_eq(c->external_labels[i].name, name))
            return c->external_labels[i].value;
    return STR("");
}

struct label_bytes *label_bytes_new(const struct series_set *set, const uint32_t *pick, size_t first,
                                    size_t n, const struct rw_endpoint_config *c, struct families *families)
{
    CLEANUP(cleanup_label_maker_free) struct label_maker *m = label_maker_new(c);
    size_t mean = series_names_bytes(set) / (series_count(set) + 1);
    struct label labels[1 + DS_LABELS] = {{STR("__name__"), STR(SCORE_METRIC)}}, *of[DS_LABELS];
    struct str values[DS_LABELS], externals[DS_LABELS];
    int r;

    /* About what is needed, at once: memory that grows by moving loses its huge pages. */
    buf_expect(&m->out->bytes, size_min(LABEL_BYTES_MAX, (mean + 16) * n));
    for (size_t k = 0; k < DS_LABELS; k++) {
        labels[1 + k] = (struct label){ds_label_names[k], STR("any")};
        externals[k] = config_external(c, ds_label_names[k]);
    }
    r = label_maker_list(m, labels, ARRAY_SIZE(labels));
    /* Without rules, the list prepared for one series serves for all: only the values differ. */
    for (size_t k = 0; k < DS_LABELS; k++)
        of[k] = c->relabel.n ? &labels[1 + k] : label_list_find(m, ds_label_names[k]);
    for (size_t i = 0; i < n; i++) {
        uint32_t series = pick ? pick[i] : (uint32_t)(first + i);

        series_labels(set, series, values);
        for (size_t k = 0; k < DS_LABELS; k++)
            of[k]->value = values[k].n ? values[k] : externals[k];
        if (c->relabel.n)
            r = label_maker_list(m, labels, ARRAY_SIZE(labels));
        if (label_maker_put(m, r, series) && families && (c->relabel.n || m->out->n == 1))
            families_note(families, label_maker_name(m), "", METRIC_TYPE_GAUGE, SCORE_HELP);
    }
    return label_maker_end(m);
}
