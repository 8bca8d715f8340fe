/* Makes names of metrics and labels, and texts of attributes' values. Owns nothing but what it returns. */
#include "exporter/otlp/translate.h"

#include "exporter/base/alloc.h"
#include "exporter/base/base64.h"
#include "exporter/base/escape.h"
#include "exporter/base/utf8.h"
#include "exporter/num/num.h"
#include "exporter/otlp/protobuf.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

/* Field numbers. */
enum { ANY_STRING = 1, ANY_BOOL = 2, ANY_INT = 3, ANY_DOUBLE = 4, ANY_ARRAY = 5, ANY_MAP = 6, ANY_BYTES = 7 };
enum { VALUES_VALUES = 1 };

/* ---- Names ---- */

void put_str(struct buf *to, struct str s)
{
    buf_put_str(to, s);
    if (buf_failed(to) < 0)
        memory_exhausted(s.n); /* it has no ceiling */
}

static void put_char(struct buf *to, char c)
{
    put_str(to, (struct str){&c, 1});
}

static bool is_metric_char(char c)
{
    return isalnum((unsigned char)c) || c == ':';
}

/* The next run of characters that a metric's name may have; *rest is what follows. */
static bool next_token(struct str *rest, struct str *ret)
{
    size_t at = 0, end;

    if (rest->n == 0)
        return false;
    while (at < rest->n && !is_metric_char(rest->p[at]))
        at++;
    for (end = at; end < rest->n && is_metric_char(rest->p[end]);)
        end++;
    *ret = (struct str){rest->p + at, end - at};
    *rest = (struct str){rest->p + end, rest->n - end};
    return ret->n > 0;
}

struct unit_word {
    const char *unit, *word;
};

/* UCUM's codes and what Prometheus calls them. */
static const struct unit_word units[] = {
    /* clang-format off */
    {"d", "days"}, {"h", "hours"}, {"min", "minutes"}, {"s", "seconds"}, {"ms", "milliseconds"},
    {"us", "microseconds"}, {"ns", "nanoseconds"}, {"By", "bytes"}, {"KiBy", "kibibytes"},
    {"MiBy", "mebibytes"}, {"GiBy", "gibibytes"}, {"TiBy", "tibibytes"}, {"KBy", "kilobytes"},
    {"MBy", "megabytes"}, {"GBy", "gigabytes"}, {"TBy", "terabytes"}, {"m", "meters"}, {"V", "volts"},
    {"A", "amperes"}, {"J", "joules"}, {"W", "watts"}, {"g", "grams"}, {"Cel", "celsius"}, {"Hz", "hertz"},
    {"1", ""}, {"%", "percent"}, {NULL, NULL},
    /* clang-format on */
};

/* After a slash. */
static const struct unit_word per_units[] = {
    {"s", "second"}, {"m", "minute"}, {"h", "hour"}, {"d", "day"},
    {"w", "week"},   {"mo", "month"}, {"y", "year"}, {NULL, NULL},
};

/* Appends the unit's word, or the unit itself with underscores for other characters, never two in a row, and
 * none in front. Nothing for one in braces, which is only a remark. */
static void put_unit(struct buf *to, struct str unit, const struct unit_word *table)
{
    char last = '_';

    unit = str_trim(unit);
    if (unit.n && (memchr(unit.p, '{', unit.n) || memchr(unit.p, '}', unit.n)))
        return;
    for (; table->unit; table++)
        if (str_eq(unit, str_of(table->unit)))
            unit = str_of(table->word);
    for (size_t i = 0; i < unit.n; i++) {
        char c = is_metric_char(unit.p[i]) ? unit.p[i] : '_';

        if (c != '_' || last != '_')
            put_char(to, c);
        last = c;
    }
}

static bool trim_underscore(struct buf *b)
{
    b->n -= b->n > 0 && b->p[b->n - 1] == '_';
    return b->n > 0;
}

/* Appends a part of the name that begins at `mark`, after an underscore, as also goes before a digit. */
static void put_part(struct buf *to, size_t mark, struct str part, struct str dropped)
{
    if (part.n == 0 || str_eq(part, dropped))
        return;
    if (to->n > mark || isdigit((unsigned char)part.p[0]))
        put_char(to, '_');
    put_str(to, part);
}

static struct str name_suffix(struct str unit, enum otlp_type type)
{
    if (type == OTLP_COUNTER)
        return STR("total");
    if (type == OTLP_GAUGE && str_eq(unit, STR("1")))
        return STR("ratio");
    return STR("");
}

void put_metric_name(struct buf *into, struct str name, struct str unit, enum otlp_type type)
{
    struct str suffix = name_suffix(unit, type);
    struct str token, rest = name, main_unit = str_take(&unit, '/');
    BUF_AUTO(main, SIZE_MAX);
    BUF_AUTO(per, SIZE_MAX);
    size_t mark = into->n;
    bool has_main = false;

    put_unit(&main, main_unit, units);
    put_unit(&per, unit, per_units);
    if (trim_underscore(&per))
        (void)trim_underscore(&main);
    while (next_token(&rest, &token)) {
        put_part(into, mark, token, suffix);
        has_main |= str_eq(token, buf_str(&main));
    }
    if (!has_main)
        put_part(into, mark, buf_str(&main), suffix);
    put_part(into, mark, per.n ? STR("per") : STR(""), STR(""));
    put_part(into, mark, buf_str(&per), STR(""));
    put_part(into, mark, suffix, STR(""));
}

void put_label_name(struct buf *into, struct str name)
{
    for (size_t i = 0, n; i < name.n; i += n) {
        bool is_kept = isalnum((unsigned char)name.p[i]);

        n = utf8_char((struct str){name.p + i, name.n - i}) ?: 1;
        if (i == 0 && isdigit((unsigned char)name.p[0]))
            put_str(into, STR("key_"));
        else if (i == 0 && !is_kept && (n == name.n || isalnum((unsigned char)name.p[n])))
            put_str(into, STR("key"));
        put_char(into, is_kept ? name.p[i] : '_');
    }
}

/* ---- Values of attributes, as the collector's libraries write them, which Prometheus uses ---- */

size_t translate_decimal(double v, char to[DECIMAL_MAX])
{
    size_t n = num_put_double(to, v);
    char *e = memchr(to, 'e', n), *point = memchr(to, '.', n);
    long exponent, places; /* places: of the digits behind the first one */

    if (!e)
        return n;
    to[n] = '\0';
    exponent = strtol(e + 1, NULL, 10);
    places = point ? e - point - 1 : 0;
    if (exponent < 0)
        return (size_t)snprintf(to, DECIMAL_MAX, "%.*f", (int)(places - exponent), v);
    if (point)
        e = (char *)memmove(point, point + 1, (size_t)places) + places;
    memset(e, '0', (size_t)(exponent - places));
    return (size_t)(e - to + exponent - places);
}

size_t translate_number(double v, char to[DECIMAL_MAX])
{
    return fabs(v) >= 1e-6 && fabs(v) < 1e21 ? translate_decimal(v, to) : num_put_double(to, v);
}

/* The last bytes of U+2028 and U+2029 in UTF-8, which both begin with e2 80; no other character has these
 * three bytes in it. */
static const char line_separator = '\xa8', paragraph_separator = '\xa9';

/* A JSON string as Go's encoder prints it, which escapes the two characters that end a line in JavaScript
 * only. */
static void put_json_string(struct buf *to, struct str s)
{
    BUF_AUTO(plain, SIZE_MAX);

    buf_put_json(&plain, s);
    if (buf_failed(&plain) < 0)
        memory_exhausted(s.n);
    for (size_t i = 0; i < plain.n; i++) {
        struct str rest = {plain.p + i, plain.n - i};
        char last = rest.n >= 3 && str_starts(rest, STR("\xe2\x80")) ? rest.p[2] : 0;

        if (last != line_separator && last != paragraph_separator) {
            put_char(to, rest.p[0]);
            continue;
        }
        put_str(to, last == line_separator ? STR("\\u2028") : STR("\\u2029"));
        i += 2;
    }
}

DEFINE_ORDER(attribute_order, struct attribute, str_cmp(a->key, b->key) ?: COMPARE(a->key.p, b->key.p))

size_t read_attributes(struct attribute **ret, struct str message, unsigned number, size_t max)
{
    struct str w = message;
    struct wire_field f;
    size_t n = 0, i = 0;

    while (wire_find(&w, number, &f))
        n++;
    *ret = NULL;
    if (n == 0 || n > max)
        return n;
    *ret = xcalloc(n, sizeof(**ret));
    for (w = message; wire_find(&w, number, &f); i++)
        (*ret)[i] = (struct attribute){wire_last(f.bytes, KEY_VALUE_KEY).bytes,
                                       wire_last(f.bytes, KEY_VALUE_VALUE).bytes};
    qsort(*ret, n, sizeof(**ret), attribute_order);
    return n;
}

static void put_json_array(struct buf *to, struct str values)
{
    struct wire_field f;

    put_char(to, '[');
    for (bool first = true; wire_find(&values, VALUES_VALUES, &f); first = false) {
        put_str(to, first ? STR("") : STR(","));
        put_any_value(to, f.bytes, true);
    }
    put_char(to, ']');
}

/* Keys are sorted; the later one of two with the same key wins. */
static void put_json_map(struct buf *to, struct str values)
{
    CLEANUP(cleanup_free) struct attribute *list = NULL;
    size_t n = read_attributes(&list, values, VALUES_VALUES, SIZE_MAX);
    bool first = true;

    put_char(to, '{');
    for (size_t i = 0; i < n; i++) {
        if (i + 1 < n && str_eq(list[i].key, list[i + 1].key))
            continue;
        put_str(to, first ? STR("") : STR(","));
        put_json_string(to, list[i].key);
        put_char(to, ':');
        put_any_value(to, list[i].value, true);
        first = false;
    }
    put_char(to, '}');
}

void put_any_value(struct buf *into, struct str any_value, bool in_json)
{
    struct wire_field f = {0}, next;
    char text[DECIMAL_MAX], *room;

    while (wire_next(&any_value, &next))
        if (next.number >= ANY_STRING && next.number <= ANY_BYTES)
            f = next;
    if (f.number == 0) {
        put_str(into, in_json ? STR("null") : STR(""));
    } else if (f.number == ANY_STRING) {
        in_json ? put_json_string(into, f.bytes) : put_str(into, f.bytes);
    } else if (f.number == ANY_BOOL) {
        put_str(into, f.value ? STR("true") : STR("false"));
    } else if (f.number == ANY_INT) {
        put_str(into, (struct str){text, (size_t)sprintf(text, "%lld", (long long)f.value)});
    } else if (f.number == ANY_DOUBLE) {
        put_str(into, isfinite(double_of(f.value)) ? STR("") : STR("json: unsupported value: "));
        put_str(into, (struct str){text, translate_number(double_of(f.value), text)});
    } else if (f.number == ANY_ARRAY) {
        put_json_array(into, f.bytes);
    } else if (f.number == ANY_MAP) {
        put_json_map(into, f.bytes);
    } else {
        put_str(into, in_json ? STR("\"") : STR(""));
        if (buf_reserve(into, (f.bytes.n + 2) / 3 * 4, &room) < 0)
            memory_exhausted(f.bytes.n);
        into->n += base64_encode(f.bytes, room);
        put_str(into, in_json ? STR("\"") : STR(""));
    }
}
