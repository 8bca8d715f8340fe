#include "controller/kube/json.h"

#include "exporter/base/alloc.h"
#include "exporter/base/escape.h"
#include "exporter/base/json.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

json_t *kube_get(const json_t *o, ...)
{
    /* jansson's getters of a member do not take const, nor do they change anything. */
    json_t *at = (json_t *)(uintptr_t)o;
    const char *name;
    va_list names;

    va_start(names, o);
    while ((name = va_arg(names, const char *)))
        at = json_object_get(at, name);
    va_end(names);
    return json_is_null(at) ? NULL : at;
}

const char *kube_as_str(const json_t *v)
{
    const char *s = json_string_value(v);

    return s && strlen(s) == json_string_length(v) ? s : NULL;
}

struct str kube_as_text(const json_t *v)
{
    return (struct str){json_string_value(v), json_string_length(v)};
}

json_t *kube_as(json_type type, json_t *v)
{
    return v && json_typeof(v) == type ? v : NULL;
}

bool kube_as_int(const json_t *v, int64_t *ret)
{
    double d = json_real_value(v);

    if (json_is_integer(v))
        *ret = json_integer_value(v);
    else if (json_is_real(v) && d == trunc(d) && fabs(d) <= 9007199254740992.0)
        *ret = (int64_t)d;
    else
        return false;
    return true;
}

bool kube_list_has(const json_t *list, const char *text)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one)
    {
        if (strcmp(cstr(json_string_value(one)), text) == 0)
            return true;
    }
    return false;
}

int kube_json_parse(json_t **ret, struct str text, char why[256])
{
    json_error_t e;
    /* A NUL in one object's string must not make a whole list unreadable. */
    json_t *o = json_loadb(cstr(text.p), text.n, JSON_ALLOW_NUL, &e);

    if (o)
        *ret = o;
    else if (why) /* jansson's message quotes the document, which may contain secrets */
        (void)snprintf(why, 256, "not JSON at line %d, column %d", e.line, e.column);
    return o ? 0 : -EINVAL;
}

json_t *kube_json_load(struct str text)
{
    json_t *o = NULL;

    return kube_json_parse(&o, text, NULL) == 0 ? o : NULL;
}

int kube_json_parse_cut(json_t **ret, struct str text, struct kube_cut *cut, char why[256])
{
    BUF_AUTO(less, SIZE_MAX);
    int r = cut ? kube_cut(cut, text, &less) : 0;

    return r < 0 ? r : kube_json_parse(ret, cut ? buf_str(&less) : text, why);
}

void kube_json_print(const json_t *o, struct buf *into)
{
    CLEANUP(cleanup_free) char *text = json_dumps(o, JSON_COMPACT | JSON_ENCODE_ANY);

    buf_put_visible(into, str_of(text));
}

json_t *kube_line(const char *s, size_t max)
{
    CLEANUP(cleanup_free) char *line = xmalloc(max + 1);

    text_line(line, max + 1, str_of(s));
    return json_string(line);
}

void kube_wipe_strings(json_t *object)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value) if (json_is_string(value))
        explicit_bzero((char *)(uintptr_t)json_string_value(value), json_string_length(value));
}

/* ---- Cutting long strings ---- */

enum { CUT_WORD_BYTES = 20 };

/* raw: followed by its closing quote. */
static int cut_learn(struct kube_cut *cut, struct str raw)
{
    CLEANUP(cleanup_free) char *plain = xmalloc(raw.n * 3);
    struct str text = {plain, jr_unescape(raw, plain)};

    cut->last_hash = cut->hash(text);
    if (cut->learn)
        cut->learn(cut->arg, cut->last_hash, text);
    buf_clear(&cut->last);
    cut->last.max = SIZE_MAX;
    buf_put(&cut->last, raw.p, raw.n + 1);
    return buf_failed(&cut->last);
}

int kube_cut(struct kube_cut *cut, struct str text, struct buf *into)
{
    CLEANUP(cleanup_free) char *pattern = xasprintf("\"%s\":\"", cut->name);
    size_t n = strlen(pattern);
    const char *end = text.p + text.n, *at;
    int r = 0;

    /* The pattern matches member names only, since a quote inside a string is escaped. */
    while (r == 0 && text.n && (at = memmem(text.p, text.n, pattern, n))) {
        struct str rest = {at + n, (size_t)(end - at) - n}, raw = {rest.p, cut->last.n - 1};
        bool repeats = cut->last.n && str_starts(rest, buf_str(&cut->last));
        struct jr j;

        jr_init(&j, (struct str){rest.p - 1, rest.n + 1}, JR_STRICT); /* from the opening quote */
        if (!repeats && !jr_string(&j, &raw))
            break; /* the JSON parser reports the error */
        if (!repeats && raw.n > KUBE_CUT_MIN_BYTES)
            r = cut_learn(cut, raw);
        buf_put(into, text.p, (size_t)(raw.p - text.p));
        if (raw.n > KUBE_CUT_MIN_BYTES)
            buf_printf(into, "cut:%016" PRIx64, cut->last_hash);
        else
            buf_put_str(into, raw);
        text = (struct str){raw.p + raw.n, (size_t)(end - raw.p) - raw.n};
        r = r ?: buf_failed(into);
    }
    buf_put_str(into, text);
    return r ?: buf_failed(into);
}

bool kube_cut_read(struct str text, uint64_t *ret)
{
    int end = 0;

    return text.n == CUT_WORD_BYTES && sscanf(text.p, "cut:%16" SCNx64 "%n", ret, &end) == 1 &&
           end == CUT_WORD_BYTES;
}

/* ---- Times ---- */

void kube_time_format(unix_ms t, char out[KUBE_TIME_BYTES])
{
    unix_ms_format(t, out);
    out[strcspn(out, ".")] = '\0';
    (void)memcpy(out + strlen(out), "Z", sizeof("Z"));
}

void kube_micro_time_format(unix_ms t, char out[KUBE_TIME_BYTES])
{
    unix_ms_format(t, out);
    (void)memcpy(out + strlen(out) - 1, "000Z", sizeof("000Z"));
}

unix_ms kube_time_parse(const char *text)
{
    struct tm tm = {0};
    const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;

    return (unix_ms){end ? (int64_t)timegm(&tm) * 1000 : 0};
}

/* ---- Conditions ---- */

json_t *kube_condition(const json_t *status, const char *type)
{
    json_t *condition;
    size_t i;

    json_array_foreach(kube_list(status, "conditions", NULL), i, condition)
    {
        if (strcmp(cstr(kube_str(condition, "type", NULL)), type) == 0)
            return condition;
    }
    return NULL;
}

bool kube_condition_is(const json_t *condition, const char *status)
{
    return strcmp(cstr(kube_str(condition, "status", NULL)), status) == 0;
}

void kube_condition_why(const json_t *condition, char *ret, size_t size)
{
    text_line(ret, size, kube_text(condition, "message", NULL));
    if (!*ret)
        text_line(ret, size, kube_text(condition, "reason", NULL));
}

const char *kube_condition_since(const json_t *status, const struct kube_condition *c)
{
    const json_t *condition = kube_condition(status, c->type);

    return kube_condition_is(condition, c->status) ? kube_str(condition, "lastTransitionTime", NULL) : NULL;
}

json_t *kube_condition_value(const struct kube_condition *c, const char *since, unix_ms now)
{
    char time[KUBE_TIME_BYTES];
    json_auto_t *value = NULL;

    kube_time_format(now, time);
    value = json_pack("{s:s, s:s, s:s, s:s, s:s}", "type", c->type, "status", c->status, "reason", c->reason,
                      "message", c->message, "lastTransitionTime", since ? since : time);
    if (c->generation)
        (void)json_object_set_new(value, "observedGeneration", json_integer(c->generation));
    return TAKE_PTR(value);
}
