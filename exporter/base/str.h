/* Slices: bytes that another object owns, not terminated. And arenas for them. */
#pragma once

#include "exporter/base/def.h"

#include <stdbool.h>
#include <string.h>

struct str {
    const char *p;
    size_t n;
};

/* A slice of a string literal. */
#define STR(lit) ((struct str){("" lit), sizeof(lit) - 1})
/* For printf: `"%.*s", STR_ARG(s)`. */
#define STR_ARG(s) (int)((s).n > 4096 ? 4096 : (s).n), (s).n ? (s).p : ""

/* A slice of a terminated string; NULL is the empty slice. */
static inline struct str str_of(const char *s)
{
    return (struct str){s ? s : "", s ? strlen(s) : 0};
}

static inline bool str_eq(struct str a, struct str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Compares bytes, a prefix first: <0, 0, >0. */
int str_cmp(struct str a, struct str b);
/* The places of n < 2^32 unique names, none of which is another one followed by a NUL, in the order of
 * str_cmp(); fast if they begin alike. */
uint32_t *str_order(const struct str *list, size_t n) __attribute__((malloc, returns_nonnull));
/* Ignores the case of ASCII letters. */
bool str_eq_nocase(struct str a, struct str b);
bool str_starts(struct str s, struct str prefix);
/* Whether s has only ASCII letters, digits and characters of `others`. */
bool str_has_only(struct str s, const char *others);
/* A decimal number, UINT64_MAX if it is larger. False without a digit, or with anything else. */
bool str_to_u64(struct str s, uint64_t *ret);
/* A terminated copy on the heap. */
char *str_dup(struct str s) __attribute__((malloc, returns_nonnull));
/* Removes the part before the next separator, or all of it, from *rest and returns it. */
struct str str_take(struct str *rest, char separator);
/* Removes spaces, tabs and line ends from both ends. */
struct str str_trim(struct str s);

/* Whether the whole text matches a pattern, as masks and aliases have them: * stands for any characters, ?
 * for one. Takes at most time proportional to both lengths multiplied. */
bool glob_match(const char *pattern, const char *text);

/* ---- Headers of HTTP requests that users configure (RFC 9110, sections 5.1 and 5.5) ---- */

enum { HEADER_VALUE_MAX = 4096 };

/* A token of at most 256 bytes. */
bool header_is_name(struct str s);
/* One line of 1 to HEADER_VALUE_MAX bytes, without control characters other than tabs. */
bool header_is_value(struct str s);
/* Whether the protocol, libcurl, or settings for credentials set it. In any case. */
bool header_is_reserved(struct str name);

/* "" for NULL. */
static inline const char *cstr(const char *s)
{
    return s ? s : "";
}

/* ---- Arenas: memory that is freed all at once, many small pieces in few large chunks ---- */

struct arena {
    struct arena_chunk *chunks; /* the one in use first */
    size_t chunk_bytes;         /* size of a chunk; a larger piece gets one of its own */
};

/* n bytes, not zeroed, aligned for pointers, integers and doubles. */
void *arena_alloc(struct arena *a, size_t n) __attribute__((malloc, returns_nonnull));
/* A terminated copy. */
char *arena_text(struct arena *a, struct str text) __attribute__((malloc, returns_nonnull));
/* Frees everything. The arena may be used again. */
void arena_done(struct arena *a);
