/* Growing byte buffers. Each has a ceiling from the start; a write that would exceed it fails with -EFBIG and
 * leaves the buffer unchanged. To write a line whole or not at all: remember `n`, and buf_truncate() back. */
#pragma once

#include "exporter/base/str.h"

#include <stdarg.h>

struct buf {
    char *p;    /* owned; NULL while empty */
    size_t n;   /* bytes in use */
    size_t cap; /* bytes allocated */
    size_t max; /* ceiling for n */
};

/* A buffer on the stack with a ceiling of `m` bytes, freed at the end of the scope. */
#define BUF_AUTO(name, m) CLEANUP(buf_done) struct buf name = {.max = (m)}

static inline void buf_init(struct buf *b, size_t max)
{
    *b = (struct buf){.max = max};
}

/* Frees the bytes. The ceiling stays. */
void buf_done(struct buf *b);
/* As buf_done(), but large memory stays for the next buffers of that size (spare.h). Any thread. */
void buf_keep(struct buf *b);
/* Reserves room for n more bytes and returns its address in *ret; the caller adds what it wrote to b->n.
 * -EFBIG past the ceiling, -ENOMEM. */
MUST_USE int buf_room(struct buf *b, size_t n, char **ret);
MUST_USE int buf_put(struct buf *b, const void *p, size_t n);
MUST_USE int buf_putc(struct buf *b, char c);
MUST_USE int buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
MUST_USE int buf_vprintf(struct buf *b, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);
/* Frees memory allocated beyond what is used. Never fails. */
void buf_shrink(struct buf *b);

static inline int buf_put_str(struct buf *b, struct str s)
{
    return buf_put(b, s.p, s.n);
}

static inline int buf_puts(struct buf *b, const char *s)
{
    return buf_put(b, s, strlen(s));
}

static inline struct str buf_str(const struct buf *b)
{
    return (struct str){b->p, b->n};
}

static inline void buf_truncate(struct buf *b, size_t n)
{
    b->n = n;
}

/* Moves the bytes out of b into the return value; b is empty afterwards and keeps its ceiling. */
static inline struct buf buf_take(struct buf *b)
{
    struct buf out = *b;
    *b = (struct buf){.max = out.max};
    return out;
}
