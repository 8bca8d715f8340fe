#include "controller/placement/format.h"

#include <errno.h>

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

/* The length of the placeholder at the start of s, 0 for none. */
static size_t format_placeholder_at(struct str s, enum ds_label *ret)
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

static int format_add_part(struct dimension_format *f, struct str text, enum ds_label label)
{
    struct dimension_part *parts = realloc(f->parts, (f->n + 1) * sizeof(*parts));

    if (!parts)
        return -ENOMEM;
    f->parts = parts;
    f->parts[f->n++] = (struct dimension_part){text, label};
    if (text.n == 0)
        f->labels |= 1u << label;
    if (text.n == 0 && label != DS_CLUSTER && label != DS_SCORE_NAME)
        f->per_series = true;
    return 0;
}

int dimension_format_parse(struct dimension_format *ret, struct str format)
{
    CLEANUP(dimension_format_done) struct dimension_format f = {0};
    size_t from = 0;

    for (size_t at = 0; at <= format.n;) {
        enum ds_label label = DS_LABELS;
        size_t n = format_placeholder_at((struct str){format.p + at, format.n - at}, &label);

        if (n == 0 && at < format.n) {
            at++;
            continue;
        }
        if (at > from && format_add_part(&f, (struct str){format.p + from, at - from}, DS_LABELS) < 0)
            return -ENOMEM;
        if (n == 0)
            break;
        if (format_add_part(&f, STR(""), label) < 0)
            return -ENOMEM;
        at += n;
        from = at;
    }
    *ret = f;
    f = (struct dimension_format){0};
    return 0;
}

void dimension_format_done(struct dimension_format *f)
{
    free(f->parts);
    *f = (struct dimension_format){0};
}

int dimension_format_render(const struct dimension_format *f, const struct str labels[DS_LABELS],
                            struct buf *into)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < f->n; i++) {
        const struct dimension_part *part = &f->parts[i];

        r = buf_put_str(into, part->text.n ? part->text : labels[part->label]);
    }
    return r;
}
