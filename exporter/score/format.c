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

struct str format_unknown_placeholder(const char *format)
{
    enum ds_label label;

    while ((format = strstr(format, "${")) && format_placeholder_at(str_of(format), &label))
        format += 2;
    if (!format)
        return STR("");
    return (struct str){format, strcspn(format, "}") + (strchr(format, '}') ? 1 : 0)};
}

int format_put_placeholders(struct buf *into)
{
    const char *comma = "";

    int r = 0;

    for (size_t i = 0; i < ARRAY_SIZE(placeholders) && r == 0; i++) {
        r = buf_printf(into, "%s${%s}", comma, placeholders[i].word.p);
        comma = ", ";
    }
    return r;
}
