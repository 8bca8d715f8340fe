#include "exporter/base/utf8.h"
#include "exporter/otlp/translate.h"

static int put_at(struct buf *into, size_t at, struct str text)
{
    char *room;
    int r = buf_room(into, text.n, &room);

    if (r < 0)
        return r;
    memmove(into->p + at + text.n, into->p + at, into->n - at);
    memcpy(into->p + at, text.p, text.n);
    into->n += text.n;
    return 0;
}

/* ---- Metric names ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c);
}

static bool is_metric_char(char c)
{
    return is_letter_or_digit(c) || c == ':';
}

/* The next run of characters that a metric's name may have; *rest is what follows. */
static bool next_token(struct str *rest, struct str *ret)
{
    size_t at = 0, end;

    while (at < rest->n && !is_metric_char(rest->p[at]))
        at++;
    for (end = at; end < rest->n && is_metric_char(rest->p[end]);)
        end++;
    *ret = (struct str){rest->p + at, end - at};
    *rest = (struct str){rest->p + end, rest->n - end};
    return ret->n > 0;
}

static bool has_token(struct str name, struct str token)
{
    struct str t;

    while (next_token(&name, &t))
        if (str_eq(t, token))
            return true;
    return false;
}

struct unit_word {
    const char *unit, *word;
};

/* UCUM's codes and what Prometheus calls them. */
static const struct unit_word units[] = {
    {"d", "days"},
    {"h", "hours"},
    {"min", "minutes"},
    {"s", "seconds"},
    {"ms", "milliseconds"},
    {"us", "microseconds"},
    {"ns", "nanoseconds"},
    {"By", "bytes"},
    {"KiBy", "kibibytes"},
    {"MiBy", "mebibytes"},
    {"GiBy", "gibibytes"},
    {"TiBy", "tibibytes"},
    {"KBy", "kilobytes"},
    {"MBy", "megabytes"},
    {"GBy", "gigabytes"},
    {"TBy", "terabytes"},
    {"m", "meters"},
    {"V", "volts"},
    {"A", "amperes"},
    {"J", "joules"},
    {"W", "watts"},
    {"g", "grams"},
    {"Cel", "celsius"},
    {"Hz", "hertz"},
    {"1", ""},
    {"%", "percent"},
    {NULL, NULL},
};

/* After a slash. */
static const struct unit_word per_units[] = {
    {"s", "second"}, {"m", "minute"}, {"h", "hour"}, {"d", "day"},
    {"w", "week"},   {"mo", "month"}, {"y", "year"}, {NULL, NULL},
};

/* The unit's word, or the unit itself; empty for one in braces, which is only a remark. */
static struct str unit_word(struct str unit, const struct unit_word *table)
{
    unit = str_trim(unit);
    if (unit.n && (memchr(unit.p, '{', unit.n) || memchr(unit.p, '}', unit.n)))
        return STR("");
    for (; table->unit; table++)
        if (str_eq(unit, str_of(table->unit)))
            return str_of(table->word);
    return unit;
}

/* Appends a unit's word with underscores for other characters, never two in a row, and none in front. */
static int put_unit(struct str word, struct buf *into)
{
    char last = '_';
    int r = 0;

    for (size_t i = 0; i < word.n && r == 0; i++) {
        char c = is_metric_char(word.p[i]) ? word.p[i] : '_';
        if (c != '_' || last != '_')
            r = buf_putc(into, c);
        last = c;
    }
    return r;
}

static void trim_underscore(struct buf *b, size_t from)
{
    if (b->n > from && b->p[b->n - 1] == '_')
        b->n--;
}

/* Appends "_" between two parts of the name that begins at `mark`. */
static int put_joint(struct buf *into, size_t mark)
{
    return into->n > mark ? buf_putc(into, '_') : 0;
}

static int put_part(struct buf *into, size_t mark, struct str part, struct str dropped)
{
    if (part.n == 0 || str_eq(part, dropped))
        return 0;
    return put_joint(into, mark) ?: buf_put_str(into, part);
}

/* The unit's words, cleaned: `main` as "bytes", `per` as "per_second". */
static int split_unit(struct str unit, struct buf *main, struct buf *per)
{
    const char *slash = unit.n ? memchr(unit.p, '/', unit.n) : NULL;
    size_t n = slash ? (size_t)(slash - unit.p) : unit.n;
    struct str word;
    int r = put_unit(unit_word((struct str){unit.p, n}, units), main);

    if (r < 0 || !slash)
        return r;
    word = unit_word((struct str){slash + 1, unit.n - n - 1}, per_units);
    if (word.n == 0)
        return 0;
    r = buf_puts(per, "per_");
    if (r == 0)
        r = put_unit(word, per);
    trim_underscore(per, 0);
    if (per->n == strlen("per"))
        per->n = 0;
    if (per->n)
        trim_underscore(main, 0);
    return r;
}

int translate_metric_name(struct str name, struct str unit, enum otlp_type type, struct buf *into)
{
    struct str suffix = type == OTLP_COUNTER                           ? STR("total")
                        : type == OTLP_GAUGE && str_eq(unit, STR("1")) ? STR("ratio")
                                                                       : STR("");
    BUF_AUTO(main, into->max);
    BUF_AUTO(per, into->max);
    struct str token, rest = name;
    size_t mark = into->n;
    int r = split_unit(unit, &main, &per);

    while (r == 0 && next_token(&rest, &token))
        r = put_part(into, mark, token, suffix);
    if (r == 0 && !has_token(name, buf_str(&main)))
        r = put_part(into, mark, buf_str(&main), suffix);
    if (r == 0 && !has_token(name, buf_str(&per)))
        r = put_part(into, mark, buf_str(&per), suffix);
    r = r ?: put_part(into, mark, suffix, STR(""));
    return r == 0 && into->n > mark && is_digit(into->p[mark]) ? put_at(into, mark, STR("_")) : r;
}

/* ---- Label names ---- */

int translate_label_name(struct str name, struct buf *into)
{
    size_t mark = into->n;
    int r = 0;

    while (name.n && r == 0) {
        size_t n = utf8_char(name) ?: 1;
        r = buf_putc(into, is_letter_or_digit(name.p[0]) ? name.p[0] : '_');
        name = (struct str){name.p + n, name.n - n};
    }
    if (r < 0 || into->n == mark)
        return r;
    if (is_digit(into->p[mark]))
        return put_at(into, mark, STR("key_"));
    if (into->p[mark] == '_' && (into->n == mark + 1 || into->p[mark + 1] != '_'))
        return put_at(into, mark, STR("key"));
    return 0;
}
