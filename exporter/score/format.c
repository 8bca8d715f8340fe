/* Reads formats of item names: our placeholders, and those in the spelling of other programs, which are
 * mistakes. The tables have both. Pure; any thread. */
#include "exporter/score/format.h"

#include "exporter/base/str.h"

#include <string.h>

static const struct {
    struct str word;
    enum ds_label label;
} placeholders[] = {
    {STR("cluster"), DS_CLUSTER},
    {STR("node"), DS_NODE},
    {STR("device"), DS_DEVICE},
    {STR("namespace"), DS_NAMESPACE},
    {STR("app"), DS_APP},
    {STR("pod"), DS_POD},
    {STR("container"), DS_CONTAINER},
    {STR("scoreName"), DS_SCORE_NAME},
    {STR("meta"), DS_META},
};

size_t format_placeholder_at(struct str s, enum ds_label *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(placeholders); i++) {
        struct str word = placeholders[i].word;

        if (s.n >= word.n + 3 && s.p[0] == '$' && s.p[1] == '{' && s.p[word.n + 2] == '}' &&
            memcmp(s.p + 2, word.p, word.n) == 0) {
            *ret = placeholders[i].label;
            return word.n + 3;
        }
    }
    return 0;
}

/* "${...}" at the start of s, up to its brace or the end. */
static struct str format_braces_at(struct str s)
{
    const char *close = memchr(s.p, '}', s.n);

    return (struct str){s.p, close ? (size_t)(close - s.p) + 1 : s.n};
}

struct str format_unknown_placeholder(const char *format)
{
    enum ds_label label;

    for (const char *at = format; (at = strstr(at, "${")); at += strlen("${"))
        if (!format_placeholder_at(str_of(at), &label))
            return format_braces_at(str_of(at));
    return STR("");
}

/* ---- Placeholders in the spelling of another program ---- */

/* Make and Kubernetes, Jinja and Go, Windows, the shell. Inside the first two, spaces may surround the
 * name. */
static const struct {
    struct str open, close;
    const char *padding;
} spellings[] = {
    {STR("$("), STR(")"), " "},
    {STR("{{"), STR("}}"), " ."},
    {STR("%"), STR("%"), ""},
    {STR("$"), STR(""), ""},
};

static struct str skip_all_of(struct str s, const char *bytes)
{
    while (s.n > 0 && strchr(bytes, s.p[0])) {
        s.p++;
        s.n--;
    }
    return s;
}

/* The name of a placeholder at the start of s; empty if there is none, or only a longer word. */
static struct str placeholder_name_at(struct str s)
{
    size_t n = 0;

    while (n < s.n && str_has_only((struct str){s.p + n, 1}, "_"))
        n++;
    for (size_t i = 0; i < ARRAY_SIZE(placeholders); i++)
        if (str_eq((struct str){s.p, n}, placeholders[i].word))
            return placeholders[i].word;
    return STR("");
}

/* Whether s begins with a placeholder in the spelling i: its length, and its name. */
static size_t spelling_at(size_t i, struct str s, struct str *ret_name)
{
    struct str open = spellings[i].open, close = spellings[i].close, rest;

    if (!str_starts(s, open))
        return 0;
    rest = skip_all_of((struct str){s.p + open.n, s.n - open.n}, spellings[i].padding);
    *ret_name = placeholder_name_at(rest);
    if (ret_name->n == 0)
        return 0;
    rest = skip_all_of((struct str){rest.p + ret_name->n, rest.n - ret_name->n}, spellings[i].padding);
    return str_starts(rest, close) ? (size_t)(rest.p - s.p) + close.n : 0;
}

static size_t other_spelling_at(struct str s, struct str *ret_name)
{
    size_t n = 0;

    for (size_t i = 0; i < ARRAY_SIZE(spellings) && n == 0; i++)
        n = spelling_at(i, s, ret_name);
    return n;
}

struct str format_mistake(const char *format)
{
    struct str rest = str_of(format), name;
    enum ds_label label;

    while (rest.n > 0) {
        size_t known = format_placeholder_at(rest, &label);
        size_t step = known ? known : 1;

        if (!known && str_starts(rest, STR("${")))
            return format_braces_at(rest);
        if (!known) {
            size_t other = other_spelling_at(rest, &name);

            if (other)
                return (struct str){rest.p, other};
        }
        rest = (struct str){rest.p + step, rest.n - step};
    }
    return STR("");
}

/* The name in "${name}", if a label of Prometheus can have it; else empty. */
static struct str label_in_braces(struct str s)
{
    struct str name;

    if (s.n <= strlen("${}") || !str_starts(s, STR("${")) || s.p[s.n - 1] != '}')
        return STR("");
    name = (struct str){s.p + strlen("${"), s.n - strlen("${}")};
    if (!str_has_only(name, "_") || (name.p[0] >= '0' && name.p[0] <= '9'))
        return STR("");
    return name;
}

void format_put_advice(struct buf *into, struct str mistake)
{
    struct str name, label = label_in_braces(mistake);

    if (other_spelling_at(mistake, &name))
        buf_printf(into, "write ${%.*s}", STR_ARG(name));
    else if (label.n)
        buf_printf(into,
                   "to use another label, copy it to one of these in the query: label_replace(QUERY, "
                   "\"device\", \"$1\", \"%.*s\", \"(.*)\")",
                   STR_ARG(label));
}

void format_put_placeholders(struct buf *into)
{
    for (size_t i = 0; i < ARRAY_SIZE(placeholders); i++) {
        if (i > 0)
            buf_puts(into, ", ");
        buf_printf(into, "${%s}", placeholders[i].word.p);
    }
}
