/* Text for people and programs, appended to a buffer. */
#ifndef DS_UI_OUT_H
#define DS_UI_OUT_H

#include "exporter/base/buf.h"

/* The first error sticks, and every later call does nothing: a writer checks once, in out_end(). */
struct out {
    struct buf *b;
    size_t mark; /* where the writer began */
    int error;
};

static inline struct out out_begin(struct buf *b)
{
    return (struct out){.b = b, .mark = b->n};
}

/* Returns the error, if any; the buffer is then as it was. */
MUST_USE int out_end(struct out *o);
void out_str(struct out *o, struct str s);
void out_puts(struct out *o, const char *s);
/* The URL without user and password. */
void out_url(struct out *o, const char *url);

enum { WORDS_BYTES = 40 };

/* "0.42 ms", "85 ms", "1.25 s", "2m 5s", "4d 3h". */
void words_seconds(double s, char out[WORDS_BYTES]);
/* "1,234,567". */
void words_count(uint64_t n, char out[WORDS_BYTES]);

#endif
