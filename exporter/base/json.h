/* A pull parser for JSON (RFC 8259) over bytes in memory. It builds nothing: values come out as slices of
 * the input. Every byte passed over is checked for grammar and UTF-8 in that one pass. Never recursive.
 *
 *     struct json j;
 *     struct str key;
 *     json_init(&j, text, JSON_STRICT);
 *     json_object(&j);
 *     while (json_member(&j, &key))
 *         if (json_key_is(key, "status"))
 *             json_string(&j, &status);
 *         else
 *             json_skip(&j, NULL);
 *     json_end(&j);
 *     if (j.error) ...
 *
 * The first error sticks: every later call does nothing, returns false or 0, and loops end. After json_member() or
 * json_item() returned true exactly one value must be read or skipped. */
#ifndef DS_BASE_JSON_H
#define DS_BASE_JSON_H

#include "exporter/base/buf.h"
#include "exporter/base/str.h"

enum { JSON_MAX_DEPTH = 256 };

enum json_type {
    JSON_NONE,
    JSON_OBJECT,
    JSON_ARRAY,
    JSON_STRING,
    JSON_NUMBER,
    JSON_TRUE,
    JSON_FALSE,
    JSON_NULL,
    JSON_NONFINITE
};

enum json_flags {
    JSON_STRICT = 0,
    JSON_LENIENT_UTF8 =
        1 << 0, /* ill-formed UTF-8 inside strings is let through, for json_unescape() to mend */
    JSON_NAN_WORDS =
        1 << 1 /* the bare words NaN, Infinity, -Infinity, as Python writes them, are JSON_NONFINITE values */
};

struct json {
    const char *p, *end, *begin;
    const char *error; /* what was expected or wrong, a literal; NULL while all is well */
    size_t error_at;   /* byte offset of it */
    unsigned flags;
    unsigned depth; /* of open objects and arrays */
    bool first;     /* nothing read yet in the innermost object or array */
    /* Which of the 64 bytes from `block` on a string cannot simply go on with; no bits before the first is looked at. */
    const char *block;
    uint64_t stops;
    uint64_t kinds[(JSON_MAX_DEPTH + 63) / 64]; /* one bit a level: 1 for an object */
};

void json_init(struct json *j, struct str text, unsigned flags);
/* The type of the next value, without reading it; JSON_NONE on error. */
enum json_type json_peek(struct json *j);
/* Enters the next value, which must be an object (an array). Linkers know these two and json_string() by another name,
 * for jansson has functions called so, and one program may hold both. */
bool json_object(struct json *j) __asm__("ds_json_object");
bool json_array(struct json *j) __asm__("ds_json_array");
/* True: *ret_key is the next member's name, raw between its quotes, and its value comes next.
 * False: the object has ended and been left, or an error. */
bool json_member(struct json *j, struct str *ret_key);
/* The same for arrays. */
bool json_item(struct json *j);
/* The next value must be a string: raw between its quotes, escapes not replaced. ret may be NULL. */
bool json_string(struct json *j, struct str *ret) __asm__("ds_json_string");
/* The next value must be a number, or a JSON_NONFINITE word: its text. */
bool json_number(struct json *j, struct str *ret);
/* Reads any value, checked in full, and gives its bytes when ret is not NULL. The fast path for data that is
 * passed on as it is. */
bool json_skip(struct json *j, struct str *ret);
/* Passes over a value that json_peek() has found, of n bytes that are known to be good. */
static inline void json_pass(struct json *j, size_t n)
{
    j->p += n;
}
/* Nothing but white space may follow. True when the whole text was one good value. */
bool json_end(struct json *j);
/* Sets an error of the caller's own at the current place (kept only if it is the first). Returns false. */
bool json_fail(struct json *j, const char *why);

/* The same, with escapes replaced as json_unescape() does. */
bool json_key_spells(struct str raw, const char *word);
/* Whether a raw name (which may hold escapes) spells `word`, which has no backslash. */
static inline bool json_key_is(struct str raw, const char *word)
{
    size_t n = strlen(word);

    if (raw.n == n && memcmp(raw.p, word, n) == 0)
        return true;
    /* Nearly all names differ in the first byte. */
    return raw.n > 0 && (raw.p[0] == word[0] || raw.p[0] == '\\' || (signed char)raw.p[0] < 0) &&
           json_key_spells(raw, word);
}
/* Replaces escapes of a raw string into out, which has room for raw.n * 3 bytes; returns the length.
 * The result is well-formed UTF-8: lone surrogates and ill-formed bytes become U+FFFD (one for each maximal ill-formed part). */
size_t json_unescape(struct str raw, char *out);
/* Appends s as a JSON string with its quotes; ill-formed UTF-8 becomes U+FFFD. */
MUST_USE int json_put_string(struct buf *b, struct str s);
/* Line and column, both from 1 and the column in bytes, of a byte offset. */
void json_position(struct str text, size_t offset, unsigned *ret_line, unsigned *ret_column);

#endif
