/* The check of a request against the schema, and JSON by the same schema. A message's length is known only
 * after its contents have been written: room for LENGTH_BYTES is left. */
#include "exporter/otlp/decode.h"

#include "exporter/base/alloc.h"
#include "exporter/base/base64.h"
#include "exporter/base/escape.h"
#include "exporter/base/json.h"
#include "exporter/base/utf8.h"
#include "exporter/num/num.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>

enum {
    LENGTH_BYTES = 5,
    DECODE_MAX_DEPTH = 64,
    DECODE_MAX_FIELDS = 4000000 /* of a request, so that it is read within about 100 ms */
};

/* Field numbers. */
enum { ANY_STRING = 1, ANY_BOOL = 2, ANY_INT = 3, ANY_DOUBLE = 4, ANY_ARRAY = 5, ANY_MAP = 6, ANY_BYTES = 7 };
enum { VALUES_VALUES = 1 };

static enum wire_type wire_type_of(const ProtobufCFieldDescriptor *f)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_BOOL:
    case PROTOBUF_C_TYPE_INT64:
        return WIRE_VARINT;
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return WIRE_FIXED64;
    default:
        return WIRE_BYTES;
    }
}

/* ---- Checking ---- */

static int decode_too_many(char why[DECODE_WHY_BYTES])
{
    (void)snprintf(why, DECODE_WHY_BYTES, "more than %d fields; send smaller batches", DECODE_MAX_FIELDS);
    return -EFBIG;
}

struct decode_check {
    const char *begin;
    char *why;
    unsigned fields;
};

static int check_fail(const struct decode_check *c, const char *at, const char *field, const char *what)
{
    (void)snprintf(c->why, DECODE_WHY_BYTES, "%s %s at byte %zu", field, what, (size_t)(at - c->begin));
    return -EBADMSG;
}

static int check_message(struct decode_check *c, struct str body, const ProtobufCMessageDescriptor *m,
                         unsigned depth)
{
    struct wire_field f = {0};
    int r = 0;

    while (r == 0 && wire_next(&body, &f)) {
        const ProtobufCFieldDescriptor *field = protobuf_c_message_descriptor_get_field(m, f.number);

        if (++c->fields > DECODE_MAX_FIELDS)
            return decode_too_many(c->why);
        if (!field)
            continue;
        if (field->type == PROTOBUF_C_TYPE_MESSAGE && f.type == WIRE_BYTES)
            r = depth == DECODE_MAX_DEPTH ? check_fail(c, f.from, field->name, "is nested too deeply")
                                          : check_message(c, f.bytes, field->descriptor, depth + 1);
        else if (f.type == WIRE_BYTES && field->label == PROTOBUF_C_LABEL_REPEATED) /* packed, 8 bytes each */
            r = f.bytes.n % 8 == 0 ? 0 : check_fail(c, f.from, field->name, "is malformed");
        else if (f.type != wire_type_of(field))
            r = check_fail(c, f.from, field->name, "has the wrong wire type");
    }
    return r == 0 && body.n != 0 ? check_fail(c, body.p, "malformed", "field") : r;
}

int decode_check(struct str body, size_t *ret_fields, char why[DECODE_WHY_BYTES])
{
    struct decode_check c = {.begin = body.p, .why = why};
    int r = check_message(&c, body, &otlp__request__descriptor, 1);

    *ret_fields = c.fields;
    return r;
}

/* ---- JSON. After the first error nothing more is read or written ---- */

static const char out_is_full[] = "too large", too_many_fields[] = "too many fields";

struct transcoder {
    struct jr in;
    struct buf *out;
    unsigned fields;
    /* The first member that OTLP does not have, and the message without it; NULL: none */
    struct str skipped;
    const ProtobufCMessageDescriptor *skipped_in;
};

static void put_bytes(struct transcoder *t, const void *p, size_t n)
{
    if (t->in.error)
        return;
    buf_put(t->out, p, n);
    if (buf_failed(t->out) < 0)
        (void)jr_fail(&t->in, out_is_full);
}

static void put_number(struct transcoder *t, uint64_t v)
{
    char text[VARINT_MAX];

    put_bytes(t, text, (size_t)(put_varint(text, v) - text));
}

static void put_fixed64(struct transcoder *t, uint64_t v)
{
    v = htole64(v);
    put_bytes(t, &v, sizeof(v));
}

/* The text of a number, which may be in quotes. */
static bool number_text(struct transcoder *t, struct str *ret)
{
    return jr_peek(&t->in) == JR_STRING ? jr_string(&t->in, ret) : jr_number(&t->in, ret);
}

static void put_double(struct transcoder *t)
{
    double v = 0;
    struct str s;

    if (!number_text(t, &s))
        return;
    if (str_eq(s, STR("Infinity")) || str_eq(s, STR("-Infinity")))
        v = s.p[0] == '-' ? -HUGE_VAL : HUGE_VAL;
    else if (num_parse_word(s, &v) != NUM_OK)
        (void)jr_fail(&t->in, "expected a number");
    put_fixed64(t, double_bits(v));
}

/* The absolute value of an integer; 1.0 and 1e3 are integers too. False if it is none, or 2^64 or more. */
static bool read_magnitude(struct str number, struct str digits, uint64_t *ret)
{
    double d = 0;

    if (num_parse(number, &d) != NUM_OK || d != floor(d))
        return false;
    if (str_to_u64(digits, ret))
        return *ret < UINT64_MAX || str_eq(digits, STR("18446744073709551615"));
    if (fabs(d) >= 0x1p64)
        return false;
    *ret = (uint64_t)fabs(d);
    return true;
}

/* From -2^63 to 2^63 - 1, in two's complement, or from 0 to 2^64 - 1. */
static uint64_t read_integer(struct transcoder *t, bool is_signed)
{
    uint64_t magnitude = 0, max = is_signed ? INT64_MAX : UINT64_MAX;
    struct str number, digits;
    bool is_negative;

    if (!number_text(t, &number))
        return 0;
    is_negative = str_starts(number, STR("-"));
    digits = is_negative ? (struct str){number.p + 1, number.n - 1} : number;
    if (is_negative)
        max = is_signed ? (uint64_t)INT64_MAX + 1 : 0;
    if (!read_magnitude(number, digits, &magnitude))
        (void)jr_fail(&t->in, "expected an integer");
    else if (magnitude > max)
        (void)jr_fail(&t->in, "integer out of range");
    return is_negative ? -magnitude : magnitude;
}

static void put_scalar(struct transcoder *t, ProtobufCType kind)
{
    enum jr_type type = jr_peek(&t->in);

    if (kind == PROTOBUF_C_TYPE_DOUBLE) {
        put_double(t);
    } else if (kind == PROTOBUF_C_TYPE_BOOL) {
        if (type != JR_TRUE && type != JR_FALSE)
            (void)jr_fail(&t->in, "expected true or false");
        (void)jr_skip(&t->in, NULL);
        put_number(t, type == JR_TRUE);
    } else if (kind == PROTOBUF_C_TYPE_FIXED64 || kind == PROTOBUF_C_TYPE_SFIXED64) {
        put_fixed64(t, read_integer(t, kind == PROTOBUF_C_TYPE_SFIXED64));
    } else {
        put_number(t, read_integer(t, true));
    }
}

static void put_text(struct transcoder *t, bool is_base64)
{
    struct str raw = {0};
    char *room;
    int r;

    if (!jr_string(&t->in, &raw))
        return;
    r = is_base64 ? base64_decode(raw, t->out) : buf_reserve(t->out, raw.n * 3, &room);
    if (r < 0)
        (void)jr_fail(&t->in, r == -EFBIG ? out_is_full : "expected base64");
    else if (!is_base64)
        t->out->n += jr_unescape(raw, room);
}

/* The length of what was written from `begin` on goes before it: in one byte if it fits, else in all. */
static void put_length(struct transcoder *t, size_t begin)
{
    size_t n = t->out->n - begin;
    char *to = t->out->p + begin - LENGTH_BYTES;

    if (t->in.error)
        return;
    if (n < 0x80) {
        memmove(to + 1, to + LENGTH_BYTES, n);
        t->out->n -= LENGTH_BYTES - 1;
        *to = (char)n;
        return;
    }
    for (unsigned i = 0; i < LENGTH_BYTES; i++, n >>= 7)
        to[i] = (char)((n & 0x7f) | (i + 1 < LENGTH_BYTES ? 0x80 : 0));
}

static void put_message(struct transcoder *t, const ProtobufCMessageDescriptor *m, unsigned depth);

/* One value of the field: of a list of messages the next element; of one of numbers all of them, packed. */
static void put_field(struct transcoder *t, const ProtobufCFieldDescriptor *f, bool packed, unsigned depth)
{
    enum wire_type type = packed ? WIRE_BYTES : wire_type_of(f);
    size_t begin;

    put_number(t, (uint64_t)f->id << 3 | type);
    if (type != WIRE_BYTES) {
        put_scalar(t, f->type);
        return;
    }
    put_bytes(t, (char[LENGTH_BYTES]){0}, LENGTH_BYTES);
    begin = t->out->n;
    if (packed)
        while (jr_item(&t->in))
            put_scalar(t, f->type);
    else if (f->type != PROTOBUF_C_TYPE_MESSAGE)
        put_text(t, f->type == PROTOBUF_C_TYPE_BYTES);
    else if (depth == DECODE_MAX_DEPTH)
        (void)jr_fail(&t->in, "nested too deeply");
    else
        put_message(t, f->descriptor, depth + 1);
    put_length(t, begin);
}

static void count_field(struct transcoder *t)
{
    if (++t->fields > DECODE_MAX_FIELDS)
        (void)jr_fail(&t->in, too_many_fields);
}

/* OTLP has these members, above its points; nobody reads them. */
static bool is_ignored(struct str key)
{
    static const char *const names[] = {"schemaUrl",  "scope",       "droppedAttributesCount",
                                        "entityRefs", "description", "metadata"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (jr_key_is(key, names[i]))
            return true;
    return false;
}

static void note_skipped(struct transcoder *t, const ProtobufCMessageDescriptor *m, struct str key)
{
    if (t->skipped_in || is_ignored(key))
        return;
    t->skipped = key;
    t->skipped_in = m;
}

static void put_message(struct transcoder *t, const ProtobufCMessageDescriptor *m, unsigned depth)
{
    struct str key;

    count_field(t);
    (void)jr_object(&t->in);
    while (jr_member(&t->in, &key)) {
        const ProtobufCFieldDescriptor *f;
        size_t i = 0;

        count_field(t);
        while (i < m->n_fields && !jr_key_is(key, m->fields[i].name))
            i++;
        if (i == m->n_fields)
            note_skipped(t, m, key);
        if (i == m->n_fields || jr_peek(&t->in) == JR_NULL) {
            (void)jr_skip(&t->in, NULL);
            continue;
        }
        f = &m->fields[i];
        if (f->label != PROTOBUF_C_LABEL_REPEATED)
            put_field(t, f, false, depth);
        else if (jr_array(&t->in) && f->type != PROTOBUF_C_TYPE_MESSAGE)
            put_field(t, f, true, depth);
        else
            while (jr_item(&t->in))
                put_field(t, f, false, depth);
    }
}

static int transcode(struct transcoder *t, struct str json, const ProtobufCMessageDescriptor *m,
                     char why[DECODE_WHY_BYTES])
{
    unsigned line, column;

    jr_init(&t->in, json, JR_STRICT);
    put_message(t, m, 1);
    if (jr_end(&t->in))
        return 0;
    if (t->in.error == too_many_fields)
        return decode_too_many(why);
    if (t->in.error == out_is_full)
        return -EFBIG;
    jr_position(json, t->in.error_at, &line, &column);
    (void)snprintf(why, DECODE_WHY_BYTES, "line %u, column %u: %s", line, column, t->in.error);
    return -EBADMSG;
}

int decode_json(struct str json, const ProtobufCMessageDescriptor *m, struct buf *into,
                char why[DECODE_WHY_BYTES])
{
    struct transcoder t = {.out = into};

    return transcode(&t, json, m, why);
}

/* Whether `key` is the name but for its case and underscores: "resource_metrics" for "resourceMetrics". */
static bool resembles(struct str key, const char *name)
{
    for (size_t i = 0; i < key.n; i++) {
        if (key.p[i] == '_')
            continue;
        if (tolower((unsigned char)key.p[i]) != tolower((unsigned char)*name))
            return false;
        name++;
    }
    return !*name;
}

/* The member that is meant; all of the message if none resembles it. */
static void put_expected(struct buf *to, const ProtobufCMessageDescriptor *m, struct str key)
{
    for (size_t i = 0; i < m->n_fields; i++)
        if (resembles(key, m->fields[i].name)) {
            put_str(to, str_of(m->fields[i].name));
            return;
        }
    for (size_t i = 0; i < m->n_fields; i++) {
        put_str(to, i > 0 ? STR(", ") : STR(""));
        put_str(to, str_of(m->fields[i].name));
    }
}

int decode_json_request(struct str json, struct buf *into, char skipped[DECODE_WHY_BYTES],
                        char why[DECODE_WHY_BYTES])
{
    enum { KEY_BYTES = 40 };
    struct transcoder t = {.out = into};
    int r = transcode(&t, json, &otlp__request__descriptor, why);
    BUF_AUTO(expected, SIZE_MAX);
    struct str key;

    skipped[0] = '\0';
    if (r < 0 || !t.skipped_in)
        return r;
    key = utf8_cut(t.skipped, KEY_BYTES);
    put_expected(&expected, t.skipped_in, t.skipped);
    (void)snprintf(skipped, DECODE_WHY_BYTES, "unknown member \"%.*s\", expected %.*s", STR_ARG(key),
                   STR_ARG(buf_str(&expected)));
    return 0;
}

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
