#include "controller/hub/rules/spec_internal.h"
#include "exporter/base/problems.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void spec_error(struct spec_reading *rd, const char *fmt, ...)
{
    size_t mark = rd->errors.n;
    char text[SPEC_WHY_BYTES];
    va_list ap;
    int r;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    r = mark ? buf_puts(&rd->errors, "; ") : 0;
    r = r ?: buf_puts(&rd->errors, text);
    /* Errors past the ceiling are left out. */
    if (r < 0)
        buf_truncate(&rd->errors, mark);
    if (r == -ENOMEM)
        rd->no_memory = true;
}

static void spec_describe(const json_t *v, char out[64])
{
    switch (v ? json_typeof(v) : JSON_NULL) {
    case JSON_OBJECT:
        (void)snprintf(out, 64, "an object");
        break;
    case JSON_ARRAY:
        (void)snprintf(out, 64, "a list");
        break;
    case JSON_STRING:
        (void)snprintf(out, 64, *json_string_value(v) ? "a string" : "an empty string");
        break;
    case JSON_INTEGER:
        (void)snprintf(out, 64, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
        break;
    case JSON_REAL:
        (void)snprintf(out, 64, "%g", json_real_value(v));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        (void)snprintf(out, 64, json_is_true(v) ? "true" : "false");
        break;
    default:
        (void)snprintf(out, 64, v ? "null" : "nothing");
    }
}

static const char *spec_dot(const struct spec_place *at, const char *key)
{
    return *at->path && *key ? "." : "";
}

void spec_expected(struct spec_reading *rd, const struct spec_place *at, const char *key, const char *what,
                   const json_t *got)
{
    char kind[64];

    spec_describe(got, kind);
    spec_error(rd, "%s%s%.100s: expected %s, got %s", at->path, spec_dot(at, key), key, what, kind);
}

int spec_result(const struct spec_reading *rd, char why[SPEC_WHY_BYTES])
{
    if (rd->no_memory)
        return -ENOMEM;
    if (rd->errors.n == 0)
        return 0;
    text_line(why, SPEC_WHY_BYTES, buf_str(&rd->errors));
    return -EINVAL;
}

struct spec_place spec_object(struct spec_reading *rd, const struct spec_place *at, const char *key)
{
    struct spec_place in = {.map = kube_get(at->map, key, NULL)};

    (void)snprintf(in.path, sizeof(in.path), "%.100s%s%.50s", at->path, spec_dot(at, key), key);
    if (in.map && !json_is_object(in.map)) {
        spec_expected(rd, at, key, "an object", in.map);
        in.map = NULL;
    }
    return in;
}

const char *spec_string(struct spec_reading *rd, const struct spec_place *at, const char *key)
{
    const json_t *v = kube_get(at->map, key, NULL);
    const char *s = json_string_value(v);

    if (!v)
        return NULL;
    if (!s)
        spec_expected(rd, at, key, "a string", v);
    else if (strlen(s) != json_string_length(v))
        spec_error(rd, "%s%s%s: expected a string without NUL characters", at->path, spec_dot(at, key), key);
    else if (*s)
        return s;
    return NULL;
}

int64_t spec_seconds(struct spec_reading *rd, const struct spec_place *at, const char *key)
{
    const json_t *v = kube_get(at->map, key, NULL);
    int64_t n;

    if (!v)
        return 0;
    if (kube_int(v, &n, NULL) && n >= 0)
        return n;
    spec_expected(rd, at, key, "a whole number of seconds", v);
    return 0;
}

static void spec_word_error(struct spec_reading *rd, const struct spec_place *at, const char *key,
                            const char *got, const char *const *words)
{
    BUF_AUTO(list, 256);
    BUF_AUTO(quoted, 512);
    int r = problem_choices(words, &list);

    r = r ?: problem_quote(str_of(got), &quoted);
    if (r < 0)
        rd->no_memory = true;
    else
        spec_error(rd, "%s%s%s: expected %.*s, got %.*s", at->path, spec_dot(at, key), key,
                   STR_ARG(buf_str(&list)), STR_ARG(buf_str(&quoted)));
}

const char *spec_word(struct spec_reading *rd, const struct spec_place *at, const char *key,
                      const char *const *words)
{
    const char *s = spec_string(rd, at, key);

    for (size_t i = 0; s && words[i]; i++)
        if (str_eq_nocase(str_of(s), str_of(words[i])))
            return words[i];
    if (s)
        spec_word_error(rd, at, key, s, words);
    return NULL;
}

struct token_ref spec_token(struct spec_reading *rd, const struct spec_place *at)
{
    size_t before = rd->errors.n;
    struct token_ref ref = {.name = spec_string(rd, at, "name"), .key = spec_string(rd, at, "key")};

    if (rd->errors.n == before && ref.key && !ref.name)
        spec_error(rd, "%s: a key needs the name of its Secret", at->path);
    return ref;
}
