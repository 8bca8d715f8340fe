/* The settings of an instance: which there are, and what their values may be. */
#include "exporter/base/arena.h"
#include "exporter/base/doc.h"
#include "exporter/base/http.h"
#include "exporter/models/instance_internal.h"
#include "exporter/models/model.h"

#include "exporter/num/num.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { YEAR = 366 * 24 * 3600 };

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

static bool is_within(const struct setting *s, double v)
{
    return (s->min == 0 && s->max == 0) || (v >= s->min && v <= s->max);
}

/* A setting's value in any of its kinds. */
union setting_value {
    double number;
    int64_t count;
};

/* libcurl takes "http:/host" and "localhost:8000", which are mistakes. */
static bool setting_parse(const struct setting *s, struct str text, union setting_value *ret)
{
    int64_t ms;
    double v;

    switch (s->kind) {
    case SETTING_TEXT:
        return text.n > 0 && !memchr(text.p, '\0', text.n);
    case SETTING_URL:
        return http_is_url(text) && !memchr(text.p, '\0', text.n);
    case SETTING_NUMBER:
        ret->number = 0;
        return num_parse(text, &ret->number) == NUM_OK && is_within(s, ret->number);
    case SETTING_COUNT:
        if (num_parse(text, &v) != NUM_OK || v != floor(v) || fabs(v) > 1e15)
            return false;
        ret->count = (int64_t)v;
        return is_within(s, v);
    case SETTING_DURATION:
        if (!duration_parse(text, &ms))
            return false;
        ret->count = ms;
        return is_within(s, (double)ms / 1000);
    case SETTING_SECONDS:
        if (!duration_parse(text, &ms) || ms % 1000 != 0)
            return false;
        ret->count = ms / 1000;
        return is_within(s, (double)ret->count);
    }
    return false;
}

bool instance_accepts(const struct instance_setting *s, const char *text)
{
    union setting_value v;

    return setting_parse(s->setting, str_of(text), &v);
}

int setting_set(struct instance *i, struct instance_setting *s, struct str text)
{
    union setting_value v = {0};
    char *copy;

    if (!setting_parse(s->setting, text, &v))
        return -EINVAL;
    if (s->setting->kind == SETTING_NUMBER) {
        *(double *)s->field = v.number;
    } else if (s->setting->kind == SETTING_TEXT || s->setting->kind == SETTING_URL) {
        copy = arena_alloc(&i->arena, text.n + 1);
        if (!copy)
            return -ENOMEM;
        memcpy(copy, text.p, text.n);
        copy[text.n] = '\0';
        *(const char **)s->field = copy;
    } else {
        *(int64_t *)s->field = v.count;
    }
    return 0;
}

/* ---- The table ---- */

static void setting_describe(struct instance_setting *to)
{
    static const char *const kinds[] = {
        [SETTING_TEXT] = "a text",
        [SETTING_URL] = "a URL with http:// or https://",
        [SETTING_NUMBER] = "a number",
        [SETTING_COUNT] = "a whole number",
        [SETTING_DURATION] = "a duration such as 30s or 1m30s",
        [SETTING_SECONDS] = "a duration in whole seconds such as 30s or 5m",
    };
    const struct setting *s = to->setting;
    bool time = s->kind == SETTING_DURATION || s->kind == SETTING_SECONDS;
    const char *unit = time ? "s" : "";
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
        (void)snprintf(to[n].name, sizeof(to[n].name), "%s%s%s", prefix, *prefix ? "." : "", s->name);
        setting_describe(&to[n]);
        setting_spell(&to[n]);
    }
    return n;
}

static size_t settings_count(const struct setting *table)
{
    size_t n = 0;

    while (table && table[n].name)
        n++;
    return n;
}

bool endpoint_has_source(const struct model_endpoint *e)
{
    return !str_eq_nocase(str_of(e->source_type), STR("none"));
}

int instance_make_settings(struct instance *i)
{
    const struct model *m = i->model;
    size_t most = settings_count(m->settings) +
                  m->n_endpoints * (ARRAY_SIZE(source_settings) + ARRAY_SIZE(score_settings));

    i->settings = calloc(most, sizeof(*i->settings));
    if (!i->settings)
        return -ENOMEM;
    i->n_settings = settings_add(i->settings, m->settings, "", i->state);
    for (size_t k = 0; k < m->n_endpoints; k++) {
        struct model_endpoint *e = &i->endpoints[k];
        const char *prefix = e->prefix + (*e->prefix == '/');

        if (endpoint_has_source(e))
            i->n_settings += settings_add(i->settings + i->n_settings, source_settings, prefix, e);
        i->n_settings += settings_add(i->settings + i->n_settings, score_settings, prefix, e);
    }
    return 0;
}
