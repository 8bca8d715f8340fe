/* Used everywhere: cleanup attributes, transfer of ownership, word tables. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLEANUP(fn)          __attribute__((cleanup(fn)))
#define PRINTF_LIKE(fmt, at) __attribute__((format(printf, fmt, at)))
#define MUST_USE             __attribute__((warn_unused_result))
#define LIKELY(x)            __builtin_expect(!!(x), 1)
#define UNLIKELY(x)          __builtin_expect(!!(x), 0)
#define ARRAY_SIZE(a)        (sizeof(a) / sizeof((a)[0]))

/* The struct that holds member `m` at address `p`. */
#define CONTAINER_OF(p, type, m) ((type *)(void *)((char *)(p)-offsetof(type, m)))

/* Reads a pointer and sets it to NULL: the reader now owns what it points to. */
#define TAKE_PTR(p)                \
    ({                             \
        __typeof__(p) *_at = &(p); \
        __typeof__(p) _was = *_at; \
        *_at = NULL;               \
        _was;                      \
    })

/* Declares cleanup_<fn>() for CLEANUP(): calls fn(*p) when the variable goes out of scope. fn takes NULL. */
#define DEFINE_CLEANUP(type, fn)                                      \
    static inline __attribute__((unused)) void cleanup_##fn(type **p) \
    {                                                                 \
        (void)fn(*p);                                                 \
    }

/* <0, 0, >0 */
#define COMPARE(x, y) (((x) > (y)) - ((x) < (y)))
/* Defines a function for qsort(), that gives for elements `a` and `b` what the expression says. */
#define DEFINE_ORDER(fn, type, by)                \
    static int fn(const void *pa, const void *pb) \
    {                                             \
        const type *a = pa;                       \
        const type *b = pb;                       \
        return by;                                \
    }

/* Defines `const char *fn(type v)`, the word of each of `count` enumerators ("unknown" without one):
 *
 *     WORD_TABLE(color_word, enum color, COLORS, {[RED] = "red", [GREEN] = "green"}); */
#define WORD_TABLE(fn, type, count, ...)                                           \
    const char *fn(type v)                                                         \
    {                                                                              \
        static const char *const words[] = __VA_ARGS__;                            \
        _Static_assert(ARRAY_SIZE(words) == (size_t)(count), "words are missing"); \
                                                                                   \
        return (size_t)v < ARRAY_SIZE(words) && words[v] ? words[v] : "unknown";   \
    }                                                                              \
    _Static_assert((count) > 0, "no enumerators")

static inline void cleanup_free(void *p)
{
    free(*(void **)p);
}

static inline void cleanup_close(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

static inline uint64_t double_bits(double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    return bits;
}

static inline double double_of(uint64_t bits)
{
    double v;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

static inline size_t size_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t size_max(size_t a, size_t b)
{
    return a > b ? a : b;
}
