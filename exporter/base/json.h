#include "exporter/base/str.h"

/* A pull parser for JSON (RFC 8259) over bytes in memory. It builds no tree: values are slices of the
 * input. Every byte read or skipped is checked for grammar and UTF-8 in the same pass. Never recursive.
 *
 *     struct jr j;
 *     struct str key;
 *     jr_init(&j, text, JR_STRICT);
 *     jr_object(&j);
 *     while (jr_member(&j, &key))
 *         if (jr_key_is(key, "status"))
 *             jr_string(&j, &status);
 *         else
 *             jr_skip(&j, NULL);
 *     jr_end(&j);
 *     if (j.error) ...
 *
 * The first error is kept: every later call does nothing and returns false or 0, so loops end. After
 * jr_member() or jr_item() returned true, exactly one value must be read or skipped.
 *
 * Reading much calls worker_slice() (loop.h) each WORKER_SLICE_BYTES, also inside of one long value. */
#pragma once

enum { JR_MAX_DEPTH = 256, JR_MAX_DEPTH_DEEP = 2048, JR_MAX_WORD = 64 };

enum jr_type { JR_NONE, JR_OBJECT, JR_ARRAY, JR_STRING, JR_NUMBER, JR_TRUE, JR_FALSE, JR_NULL, JR_NONFINITE };

enum jr_flags {
    JR_STRICT = 0,
    JR_LENIENT_UTF8 = 1 << 0, /* accept ill-formed UTF-8 in strings; jr_unescape() replaces it */
    JR_NAN_WORDS = 1 << 1,    /* accept Python's NaN, Infinity, -Infinity as JR_NONFINITE */
    JR_DEEP = 1 << 2, /* JR_MAX_DEPTH_DEEP levels instead of JR_MAX_DEPTH: for other people's objects */
};

struct jr {
    const char *p, *end, *begin;
    const char *slice_at; /* where worker_slice() is due */
    const char *error;    /* a literal; NULL without an error */
    size_t error_at;      /* its byte offset */
    unsigned flags;
    unsigned depth; /* of open objects and arrays */
    bool first;     /* at the start of the innermost object or array */
    /* A bit for each of 64 bytes at `block` that may end or interrupt a string; 0 before the first scan. */
    const char *block;
    uint64_t stops;
    uint64_t kinds[(JR_MAX_DEPTH_DEEP + 63) / 64]; /* one bit per level: 1 for an object */
};

void jr_init(struct jr *j, struct str text, unsigned flags);
/* The type of the next value, which is not read; JR_NONE on error. */
enum jr_type jr_peek(struct jr *j);
/* Enters the next value, which must be an object (an array). */
bool jr_object(struct jr *j);
bool jr_array(struct jr *j);
/* The next member's name, raw between its quotes; its value is next. False: the object's end, or an error. */
bool jr_member(struct jr *j, struct str *ret_key);
bool jr_item(struct jr *j);
/* The next value must be a string: raw between its quotes, escapes not replaced. ret may be NULL. */
bool jr_string(struct jr *j, struct str *ret);
/* The next value must be a number, or a JR_NONFINITE word: its text. */
bool jr_number(struct jr *j, struct str *ret);
/* Skips and checks any value; *ret (ret may be NULL) is its bytes. Fast, for data forwarded unchanged. */
bool jr_skip(struct jr *j, struct str *ret);
/* Whether only white space follows: the whole text is one valid value. */
bool jr_end(struct jr *j);
/* Sets an error at the current position, unless there is one. Returns false. */
bool jr_fail(struct jr *j, const char *why);

bool jr_key_spells(struct str raw, const char *word); /* the slow part of jr_key_is() */
/* Whether a raw name, maybe with escapes, spells `word`: without backslash, of at most JR_MAX_WORD bytes. */
static inline bool jr_key_is(struct str raw, const char *word)
{
    size_t n = strlen(word);

    if (raw.n == n && memcmp(raw.p, word, n) == 0)
        return true;
    /* Nearly all names differ in the first byte. */
    return raw.n > 0 && (raw.p[0] == word[0] || raw.p[0] == '\\' || (signed char)raw.p[0] < 0) &&
           jr_key_spells(raw, word);
}
/* The line and column of a byte offset, both from 1, the column in bytes. */
void jr_position(struct str text, size_t offset, unsigned *ret_line, unsigned *ret_column);
