#include "exporter/models/llm_prompt.h"

#include "exporter/base/json.h"
#include "exporter/num/num.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

const char llm_default_template[] = "Predict the next value of this time series.\n"
                                    "Answer with one number and nothing else.\n"
                                    "\n"
                                    "timeseries_kind: ${timeseries_kind}\n"
                                    "app_name: ${app_name}\n"
                                    "${tendency}\n"
                                    "\n"
                                    "timestamp : value\n"
                                    "${values}";

static int prompt_put_number(struct buf *into, double v)
{
    char text[NUM_MAX];

    return buf_put(into, text, num_put_double(text, v));
}

static int prompt_put_values(struct buf *into, const struct llm_template *t, const struct llm_series *s)
{
    int r = 0;

    (void)t;
    for (size_t i = 0; r == 0 && i < s->n; i++)
        if (isfinite(s->values[i]))
            r = prompt_put_number(into, s->times[i])
                    ?: buf_puts(into, " : ") ?: prompt_put_number(into, s->values[i]) ?: buf_putc(into, '\n');
    return r;
}

static int prompt_put_labels(struct buf *into, const struct llm_template *t, const struct llm_series *s)
{
    (void)t;
    return buf_put_str(into, s->labels);
}

/* The label's raw value; empty without one. The labels are valid JSON. */
static struct str prompt_label(struct str labels, const char *name)
{
    struct str key, value = {0};
    struct jr j;

    jr_init(&j, labels, JR_LENIENT_UTF8);
    (void)jr_object(&j);
    while (jr_member(&j, &key))
        if (jr_key_is(key, name) && jr_peek(&j) == JR_STRING)
            (void)jr_string(&j, &value);
        else
            (void)jr_skip(&j, NULL);
    return value;
}

static int prompt_put_app_name(struct buf *into, const struct llm_template *t, const struct llm_series *s)
{
    struct str raw = prompt_label(s->labels, "pod");
    char *room;
    int r;

    (void)t;
    if (!raw.n)
        raw = prompt_label(s->labels, "namespace");
    if (!raw.n)
        return buf_puts(into, "unknown");
    r = buf_room(into, raw.n * 3, &room);
    if (r == 0)
        into->n += jr_unescape(raw, room);
    return r;
}

static int prompt_put_kind(struct buf *into, const struct llm_template *t, const struct llm_series *s)
{
    (void)s;
    return buf_puts(into, t->timeseries_kind);
}

static int prompt_put_tendency(struct buf *into, const struct llm_template *t, const struct llm_series *s)
{
    (void)s;
    return buf_puts(into, t->tendency);
}

static const struct placeholder {
    const char *name;
    int (*put)(struct buf *into, const struct llm_template *t, const struct llm_series *s);
} placeholders[] = {
    {"${values}", prompt_put_values},     {"${labels}", prompt_put_labels},
    {"${app_name}", prompt_put_app_name}, {"${timeseries_kind}", prompt_put_kind},
    {"${tendency}", prompt_put_tendency},
};

static const struct placeholder *placeholder_at(const char *p)
{
    for (size_t i = 0; i < ARRAY_SIZE(placeholders); i++)
        if (strncmp(p, placeholders[i].name, strlen(placeholders[i].name)) == 0)
            return &placeholders[i];
    return NULL;
}

static int template_line(const char *text, const char *at)
{
    int line = 1;

    for (; text < at; text++)
        line += *text == '\n';
    return line;
}

int llm_template_check(const char *text, char **ret_why)
{
    bool has_values = strstr(text, placeholders[0].name);

    for (const char *p = text; (p = strstr(p, "${")); p += 2)
        if (!placeholder_at(p)) {
            if (asprintf(
                    ret_why,
                    "line %d: unknown placeholder \"%.*s\"; known are ${values}, ${labels}, ${app_name}, "
                    "${timeseries_kind} and ${tendency}",
                    template_line(text, p), (int)strcspn(p, "} \n") + 1, p) < 0)
                *ret_why = NULL;
            return *ret_why ? -EINVAL : -ENOMEM;
        }
    if (has_values)
        return 0;
    if (asprintf(ret_why, "it has no ${values}, so that every series would have the same answer") < 0)
        *ret_why = NULL;
    return *ret_why ? -EINVAL : -ENOMEM;
}

int llm_put_prompt(struct buf *into, const struct llm_template *t, const struct llm_series *s)
{
    const char *p = t->text;
    int r = 0;

    while (r == 0 && *p) {
        const struct placeholder *known = placeholder_at(p);
        size_t n = known ? 0 : 1 + strcspn(p + 1, "$");
        r = known ? known->put(into, t, s) : buf_put(into, p, n);
        p += known ? strlen(known->name) : n;
    }
    return r;
}
