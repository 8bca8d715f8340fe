/* Growing byte buffers, each with a ceiling from the start. An append that would exceed it, or finds no
 * memory, fails, and the buffer remembers that: all later appends do nothing, and the writer asks once, at
 * the end:
 *
 *     buf_puts(&line, "scorer ");
 *     buf_put_json(&line, name);
 *     if (buf_failed(&line) < 0)
 *         return buf_failed(&line);
 *
 * To write something whole or not at all, and go on without it: buf_mark() before it, buf_commit() after
 * it. */
#pragma once

#include "exporter/base/str.h"

#include <stdarg.h>

struct buf {
    char *p;    /* owned; NULL while empty */
    size_t n;   /* bytes in use */
    size_t cap; /* bytes allocated */
    size_t max; /* ceiling for n */
    int error;  /* of the first append that failed; 0: none. Writers ask by buf_failed() */
    bool asked; /* buf_failed() has told somebody of it */
};

/* A place in a buffer to go back to. */
struct buf_mark {
    size_t n;
    int error;
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
 * -EFBIG past the ceiling, -ENOMEM, or the error of an earlier append. That it fails is not remembered. */
MUST_USE int buf_reserve(struct buf *b, size_t n, char **ret);
/* Allocates for n more bytes at once, if that is possible. A hint: the appends that follow say if it was
 * not. */
void buf_expect(struct buf *b, size_t n);

/* Appends. */
void buf_put(struct buf *b, const void *p, size_t n);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_vprintf(struct buf *b, const char *fmt, va_list ap) PRINTF_LIKE(2, 0);

/* Remembers the failure of a writer that reserves room for itself, unless there was one before. */
void buf_fail(struct buf *b, int error);
/* -EFBIG or -ENOMEM of the first append that failed since the buffer was empty; 0 if none did. */
MUST_USE static inline int buf_failed(struct buf *b)
{
    if (b->error)
        b->asked = true;
    return b->error;
}

static inline struct buf_mark buf_mark(const struct buf *b)
{
    return (struct buf_mark){.n = b->n, .error = b->error};
}

/* Removes what was appended since the mark, and with it a failure of that. Nothing before the mark may have
 * been removed. */
void buf_rollback(struct buf *b, struct buf_mark mark);

/* Ends what was begun at the mark: if an append has failed, the buffer is as it was, and the failure is
 * returned. */
MUST_USE int buf_commit(struct buf *b, struct buf_mark mark);

/* Frees memory allocated beyond what is used. Never fails. */
void buf_shrink(struct buf *b);

static inline void buf_put_str(struct buf *b, struct str s)
{
    buf_put(b, s.p, s.n);
}

static inline void buf_puts(struct buf *b, const char *s)
{
    buf_put(b, s, strlen(s));
}

static inline struct str buf_str(const struct buf *b)
{
    return (struct str){b->p, b->n};
}

/* Removes all but the first n bytes. A failure stays: what follows would have a hole before it. */
void buf_truncate(struct buf *b, size_t n);

/* Removes all bytes, and a failure; keeps the memory. */
static inline void buf_clear(struct buf *b)
{
    b->n = 0;
    b->error = 0;
    b->asked = false;
}

/* Moves the bytes out of b into the return value; b is empty afterwards and keeps its ceiling. Who takes the
 * bytes of a buffer that failed must have asked: they have a hole. */
struct buf buf_take(struct buf *b);
