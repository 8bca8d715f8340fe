#include "controller/assist/rules/yaml.h"

#include "controller/kube/json.h"
#include "exporter/base/json.h"

#include <errno.h>

enum { MAX_DEPTH = 32 };

/* Whether it reads as this string in YAML 1.1 and 1.2 without quotes: letters, digits and a few others, and
 * no word or number. */
static bool yaml_is_plain(struct str s)
{
    static const char *const words[] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
    bool has_letter = false;

    if (s.n == 0 || s.n > 256 || !str_has_only(s, "-._/") || !str_has_only((struct str){s.p, 1}, "/"))
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (str_eq_nocase(s, str_of(words[i])))
            return false;
    /* "0x1f", "1e3", "0b1", "1_000" and "12" begin with a digit; a word that ends in one of g-z is none. */
    if (s.p[0] >= '0' && s.p[0] <= '9')
        for (size_t i = 0; i < s.n; i++)
            has_letter = has_letter || (s.p[i] >= 'g' && s.p[i] <= 'z' && s.p[i] != 'o' && s.p[i] != 'x');
    else
        has_letter = true;
    return has_letter;
}

static int yaml_string(struct str s, struct buf *into)
{
    return yaml_is_plain(s) ? buf_put_str(into, s) : buf_put_json(into, s);
}

static int yaml_indent(unsigned depth, struct buf *into)
{
    return buf_printf(into, "%*s", (int)depth * 2, "");
}

static int yaml_value(const json_t *v, unsigned depth, bool after_dash, struct buf *into);

/* What follows "key:" or "- ". */
static int yaml_inner(const json_t *v, unsigned depth, bool after_dash, struct buf *into)
{
    bool is_empty = json_is_object(v) ? json_object_size(v) == 0 : json_array_size(v) == 0;
    int r;

    if (!json_is_object(v) && !json_is_array(v)) {
        r = after_dash ? 0 : buf_putc(into, ' ');
        r = r ?: json_is_string(v) ? yaml_string(kube_text(v, NULL), into) : kube_json_print(v, into);
        return r ?: buf_putc(into, '\n');
    }
    if (is_empty)
        return buf_printf(into, "%s%s\n", after_dash ? "" : " ", json_is_object(v) ? "{}" : "[]");
    r = after_dash ? 0 : buf_putc(into, '\n');
    return r ?: yaml_value(v, depth, after_dash, into);
}

/* A container that is not empty. The first line has its indentation already if it follows a dash. Lists in
 * maps are indented as their keys are, so that the two look as kubectl prints them. */
static int yaml_value(const json_t *v, unsigned depth, bool after_dash, struct buf *into)
{
    const char *key;
    json_t *item;
    size_t i;
    int r = depth > MAX_DEPTH ? -EFBIG : 0;

    json_object_foreach((json_t *)(uintptr_t)v, key, item)
    {
        r = r ?: after_dash ? 0 : yaml_indent(depth, into);
        r = r ?: yaml_string(str_of(key), into);
        r = r ?: buf_putc(into, ':');
        r = r ?: yaml_inner(item, json_is_array(item) ? depth : depth + 1, false, into);
        after_dash = false;
    }
    json_array_foreach(v, i, item)
    {
        r = r ?: after_dash ? 0 : yaml_indent(depth, into);
        r = r ?: buf_puts(into, "- ");
        r = r ?: yaml_inner(item, depth + 1, true, into);
        after_dash = false;
    }
    return r;
}

int yaml_print(const json_t *objects, struct buf *into)
{
    json_t *o;
    size_t i;
    int r = 0;

    json_array_foreach(objects, i, o)
    {
        r = r ?: i ? buf_puts(into, "---\n") : 0;
        r = r ?: yaml_value(o, 0, false, into);
    }
    return r;
}
