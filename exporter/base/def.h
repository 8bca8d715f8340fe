/* Used everywhere: cleanup attributes, transfer of ownership, word tables, allocation that cannot fail. */
#pragma once

#include <stdarg.h>
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

/* Writes "out of memory" with the number of bytes to stderr and aborts. */
_Noreturn void memory_exhausted(size_t bytes);
/* Like xmalloc() and its kin, but they end the program if there is no memory: for what is small. A size that
 * an input decides is bounded by its reader, which returns -ENOMEM or -EFBIG instead. */
void *xmalloc(size_t n) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t count, size_t n) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t n) __attribute__((returns_nonnull));
void *xreallocarray(void *p, size_t count, size_t n) __attribute__((returns_nonnull));
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...) __attribute__((malloc, returns_nonnull)) PRINTF_LIKE(1, 2);
char *xvasprintf(const char *fmt, va_list ap) __attribute__((malloc, returns_nonnull)) PRINTF_LIKE(1, 0);

/* The lowest limit of the process's cgroup and those above it (version 2, or the memory controller of version
 * 1), or else the machine's memory. `root` is put before the paths of /proc and /sys; "" outside of tests. */
uint64_t memory_limit(const char *root);

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
