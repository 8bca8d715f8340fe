/* Slices: bytes that another object owns, not terminated. */
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

/* "" for NULL. */
static inline const char *cstr(const char *s)
{
    return s ? s : "";
}
