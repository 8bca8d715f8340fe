/* Owns nothing; any thread that has the objects. */
#include "controller/assist/yaml.h"

#include "controller/kube/json.h"
#include "exporter/base/escape.h"

/* Words that YAML 1.1 or 1.2 might take for something else are shorter, and numbers begin with a digit. */
static void yaml_string(struct buf *into, struct str s)
{
    bool is_plain = s.n > 5 && str_has_only(s, "-._/") && str_has_only((struct str){s.p, 1}, "") &&
                    (s.p[0] < '0' || s.p[0] > '9');

    if (is_plain)
        buf_put_str(into, s);
    else
        buf_put_json_visible(into, s);
}

static void yaml_value(struct buf *into, const json_t *v, int depth, bool in_list);

/* Members and elements, each on a line at this depth; in a list the first one has its indentation already.
 * Lists in maps are indented as their keys are, as kubectl prints them. */
static void yaml_lines(struct buf *into, const json_t *v, int depth, bool in_list)
{
    const char *key;
    json_t *item;
    size_t i;

    json_object_foreach((json_t *)(uintptr_t)v, key, item)
    {
        buf_printf(into, "%*s%s:", in_list ? 0 : depth * 2, "", key);
        yaml_value(into, item, json_is_array(item) ? depth : depth + 1, false);
        in_list = false;
    }
    json_array_foreach(v, i, item)
    {
        buf_printf(into, "%*s-", depth * 2, "");
        yaml_value(into, item, depth + 1, true);
    }
}

/* What follows "key:" or "-". */
static void yaml_value(struct buf *into, const json_t *v, int depth, bool in_list)
{
    if (json_is_string(v)) {
        buf_putc(into, ' ');
        yaml_string(into, kube_text(v, NULL));
        buf_putc(into, '\n');
    } else if (json_is_integer(v)) {
        buf_printf(into, " %" JSON_INTEGER_FORMAT "\n", json_integer_value(v));
    } else {
        buf_putc(into, in_list ? ' ' : '\n');
        yaml_lines(into, v, depth, in_list);
    }
}

int yaml_print(const json_t *objects, struct buf *into)
{
    json_t *o;
    size_t i;

    json_array_foreach(objects, i, o)
    {
        if (i > 0)
            buf_puts(into, "---\n");
        yaml_lines(into, o, 0, false);
    }
    return buf_failed(into);
}
