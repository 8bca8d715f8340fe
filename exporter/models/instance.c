/* Settings first: which there are, what their values may be, and where these come from. */
#include "exporter/models/instance.h"

#include "exporter/base/alloc.h"
#include "exporter/base/arena.h"
#include "exporter/base/file.h"
#include "exporter/models/model.h"
#include "exporter/models/setting.h"

#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/http/http.h"
#include "exporter/num/num.h"
#include "exporter/ui/member.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { YEAR = 366 * 24 * 3600, ARENA_BYTES = 4 << 10, MAX_FILE_BYTES = 1 << 20 };

const struct model *const models[] = {&model_mean, &model_forecast, &model_llm, &model_static, NULL};

const struct model *model_find(const char *name)
{
    for (const struct model *const *m = models; *m; m++)
        if (strcmp((*m)->name, name) == 0)
            return *m;
    return NULL;
}

#define FIELD(name) .field = offsetof(struct model_endpoint, name)

/* Settings of an endpoint with a source, and of every endpoint. */
static const struct setting source_settings[] = {
    {"source-host", "URL", "Base URL of the source, for /config", SETTING_URL, FIELD(source_host)},
    {"source-path", "PATH", "Path of the source's query API, for /config", SETTING_TEXT, FIELD(source_path)},
    {"source-query", "PROMQL", "Query, for /config", SETTING_TEXT, FIELD(query)},
    {"source-range", "DURATION", "Range of the query, for /config", SETTING_SECONDS, FIELD(range), .min = 1,
     .max = YEAR},
    {"source-step", "DURATION", "Step of the query, for /config", SETTING_SECONDS, FIELD(step), .min = 1,
     .max = YEAR},
    {.name = NULL},
};
static const struct setting score_settings[] = {
    {"score-name", "NAME", "Name of the score, for /config", SETTING_TEXT, FIELD(score_name)},
    {"scoring-interval", "DURATION", "Interval between two calls, for /config", SETTING_SECONDS,
     FIELD(interval), .min = 1, .max = YEAR},
    {.name = NULL},
};

#undef FIELD

/* ---- Values ---- */

/* *ret is set to a number; of durations, to seconds. libcurl takes "http:/host" and "localhost:8000", which
 * are mistakes. */
static bool setting_parse(const struct setting *s, struct str text, double *ret)
{
    bool whole = s->kind == SETTING_COUNT || s->kind == SETTING_SECONDS;
    int64_t ms;

    switch (s->kind) {
    case SETTING_TEXT:
    case SETTING_TABLE:
        return text.n > 0 && !memchr(text.p, '\0', text.n);
    case SETTING_URL:
        return http_is_url(text) && !memchr(text.p, '\0', text.n);
    case SETTING_NUMBER:
    case SETTING_COUNT:
        if (num_parse(text, ret) != NUM_OK)
            return false;
        break;
    case SETTING_DURATION:
    case SETTING_SECONDS:
        if (!duration_parse(text, &ms))
            return false;
        *ret = (double)ms / 1000;
        break;
    }
    if (whole && (*ret != floor(*ret) || fabs(*ret) > 1e15))
        return false;
    return (s->min == 0 && s->max == 0) || (*ret >= s->min && *ret <= s->max);
}

bool instance_accepts(const struct instance_setting *s, const char *text)
{
    return setting_parse(s->setting, str_of(text), &(double){0});
}

/* False if the text is not a valid value. */
static bool setting_set(struct instance *i, struct instance_setting *s, struct str text)
{
    enum setting_kind kind = s->setting->kind;
    double v = 0;

    if (!setting_parse(s->setting, text, &v))
        return false;
    if (kind == SETTING_NUMBER) {
        *(double *)s->field = v;
    } else if (kind == SETTING_TEXT || kind == SETTING_TABLE || kind == SETTING_URL) {
        *(const char **)s->field = arena_text(&i->arena, text);
    } else {
        *(int64_t *)s->field = llround(kind == SETTING_DURATION ? v * 1000 : v);
    }
    return true;
}

/* ---- The table ---- */

static void setting_describe(struct instance_setting *to)
{
    static const char *const kinds[] = {
        [SETTING_TEXT] = "a text",
        [SETTING_TABLE] = "a text",
        [SETTING_URL] = "a URL with http:// or https://",
        [SETTING_NUMBER] = "a number",
        [SETTING_COUNT] = "a whole number",
        [SETTING_DURATION] = "a duration such as 30s or 1m30s",
        [SETTING_SECONDS] = "a duration in whole seconds such as 30s or 5m",
    };
    const struct setting *s = to->setting;
    const char *unit = s->kind == SETTING_DURATION || s->kind == SETTING_SECONDS ? "s" : "";
    int n = snprintf(to->expected, sizeof(to->expected), "%s", kinds[s->kind]);

    if (s->min != 0 || s->max != 0)
        (void)snprintf(to->expected + n, sizeof(to->expected) - (size_t)n, " from %.15g%s to %.15g%s", s->min,
                       unit, s->max, unit);
}

/* Makes the variable and the key of the name. */
static void setting_spell(struct instance_setting *to)
{
    size_t k = 0, i = 0;
    bool upper = false;

    for (; to->name[i]; i++) {
        char c = to->name[i];
        bool separates = c == '-' || c == '.';
        char big = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);

        to->variable[i] = separates ? '_' : big;
        if (!separates)
            to->key[k++] = upper ? big : c;
        upper = separates;
    }
    to->variable[i] = to->key[k] = '\0';
}

/* Adds the settings of a table, whose fields are in `base`; returns how many. */
static size_t settings_add(struct instance_setting *to, const struct setting *table, const char *prefix,
                           void *base)
{
    size_t n = 0;

    for (const struct setting *s = table; s && s->name; s++, n++) {
        to[n].setting = s;
        to[n].field = (char *)base + s->field;
        if (*prefix)
            (void)snprintf(to[n].name, sizeof(to[n].name), "%s.%s", prefix, s->name);
        else
            (void)snprintf(to[n].name, sizeof(to[n].name), "%s", s->name);
        setting_describe(&to[n]);
        setting_spell(&to[n]);
    }
    return n;
}

static bool endpoint_has_source(const struct model_endpoint *e)
{
    return !str_eq_nocase(str_of(e->source_type), STR("none"));
}

/* ---- Where values come from ---- */

/* Quotes a URL without its credentials. */
static void setting_refuse(const struct instance_setting *s, const char *name, struct str value,
                           unsigned line, unsigned column, struct problems *p)
{
    BUF_AUTO(shown, MAX_FILE_BYTES);
    BUF_AUTO(quoted, 1024);

    if (s->setting->kind == SETTING_URL) {
        http_url_for_people(value, &shown);
        value = buf_str(&shown);
    }
    problem_quote(value, &quoted);
    problems_add(p, PROBLEM_ERROR, line, column, "%s: expected %s, got %.*s", name, s->expected,
                 STR_ARG(buf_str(&quoted)));
}

static void settings_from_node(struct instance *i, const struct node *root, struct problems *p)
{
    CLEANUP(cleanup_free) const char **known = xcalloc(i->n_settings + 1, sizeof(*known));

    for (size_t k = 0; k < i->n_settings; k++)
        known[k] = i->settings[k].key;
    node_only_keys(root, known, PROBLEM_ERROR, p);
    for (size_t k = 0; k < i->n_settings; k++) {
        struct instance_setting *s = &i->settings[k];
        const struct node *n = node_given(root, s->key);
        bool is_scalar = n && n->kind != NODE_LIST && n->kind != NODE_MAP;

        if (!n || n->kind == NODE_BROKEN || (!is_scalar && s->setting->kind == SETTING_TABLE))
            continue;
        if (is_scalar && setting_set(i, s, n->text))
            continue;
        if (is_scalar && s->setting->kind == SETTING_URL)
            setting_refuse(s, s->key, n->text, n->line, n->column, p);
        else
            node_expected(n, p, "%s", s->expected);
    }
}

static void settings_from_file(struct instance *i, const char *path, struct problems *p)
{
    CLEANUP(cleanup_doc_free) struct doc *doc = NULL;
    BUF_AUTO(text, MAX_FILE_BYTES);
    const struct node *root;
    int r = file_read(path, &text);

    if (r < 0) {
        problems_add(p, PROBLEM_ERROR, 0, 0, "%s", r == -EFBIG ? "larger than 1 MiB" : strerror(-r));
        return;
    }
    if (doc_parse(&doc, buf_str(&text), p) < 0)
        return;
    root = doc->root;
    if (root->kind != NODE_MAP && root->kind != NODE_NULL) {
        node_expected(root, p, "an object");
        return;
    }
    settings_from_node(i, root, p);
    if (i->model->read_file && root->kind == NODE_MAP)
        i->model->read_file(i->state, root, p);
}

int instance_configure(struct instance *i, const char *path, struct problems *file, struct problems *others)
{
    if (path)
        settings_from_file(i, path, file);
    for (size_t k = 0; k < i->n_settings; k++) {
        struct instance_setting *s = &i->settings[k];
        const char *name = s->setting->variable, *value = name ? getenv(name) : NULL;

        if (!*cstr(value)) {
            name = s->variable;
            value = getenv(name);
        }
        /* An empty variable counts as none, as in a manifest that leaves it empty. */
        if (*cstr(value) && !setting_set(i, s, str_of(value)))
            setting_refuse(s, name, str_of(value), 0, 0, others);
        if (s->flag)
            (void)setting_set(i, s, str_of(s->flag));
    }
    return file->errors || others->errors ? -EINVAL : 0;
}

/* ---- Life ---- */

struct instance *instance_new(const struct model *m)
{
    struct instance *i = xcalloc(1, sizeof(*i));
    size_t most = m->n_endpoints * (ARRAY_SIZE(source_settings) + ARRAY_SIZE(score_settings));

    i->model = m;
    i->arena.chunk_bytes = ARENA_BYTES;
    i->state = xcalloc(1, m->size ? m->size : 1);
    i->endpoints = xcalloc(m->n_endpoints, sizeof(*i->endpoints));
    memcpy(i->endpoints, m->endpoints, m->n_endpoints * sizeof(*i->endpoints));
    for (const struct setting *s = m->settings; s && s->name; s++)
        most++;
    i->settings = xcalloc(most, sizeof(*i->settings));
    i->n_settings = settings_add(i->settings, m->settings, "", i->state);
    for (size_t k = 0; k < m->n_endpoints; k++) {
        struct model_endpoint *e = &i->endpoints[k];
        const char *prefix = e->prefix + (*e->prefix == '/');

        if (endpoint_has_source(e))
            i->n_settings += settings_add(i->settings + i->n_settings, source_settings, prefix, e);
        i->n_settings += settings_add(i->settings + i->n_settings, score_settings, prefix, e);
    }
    for (size_t k = 0; k < i->n_settings; k++)
        if (i->settings[k].setting->otherwise)
            (void)setting_set(i, &i->settings[k], str_of(i->settings[k].setting->otherwise));
    return i;
}

void instance_close(struct instance *i)
{
    if (i->model->close)
        i->model->close(i->state);
}

struct instance *instance_free(struct instance *i)
{
    if (!i)
        return NULL;
    instance_close(i);
    arena_done(&i->arena);
    free(i->settings);
    free(i->endpoints);
    free(i->state);
    free(i);
    return NULL;
}

void instance_put_config(const struct instance *i, size_t endpoint, struct buf *into)
{
    const struct model_endpoint *e = &i->endpoints[endpoint];

    buf_puts(into, "{");
    member_text(into, "name", e->name);
    member_text(into, "description", e->description);
    member_object(into, "source");
    member_text(into, "type", e->source_type);
    if (endpoint_has_source(e)) {
        member_text(into, "host", e->source_host);
        member_text(into, "path", e->source_path);
        member_object(into, "params");
        member_text(into, "query", e->query);
        member_count(into, "range", (uint64_t)e->range);
        member_count(into, "step", (uint64_t)e->step);
        buf_puts(into, "}");
    }
    buf_puts(into, "}");
    member_object(into, "scoring");
    member(into, "path");
    buf_printf(into, "\"%s/scoring\"", e->prefix); /* which has nothing to escape */
    member_object(into, "params");
    member_text(into, "name", e->score_name);
    member_count(into, "interval", (uint64_t)e->interval);
    buf_puts(into, "}}}");
}
