/* Cuts a stream into lines, as a watch sends its events: each byte is looked at once, a line that lies
 * within one piece is never copied, and what is kept between pieces has a ceiling. */
#ifndef DS_KUBE_LINES_H
#define DS_KUBE_LINES_H

#include "exporter/base/buf.h"

struct lines {
    struct buf partial; /* the beginning of a line whose end has not come */
    size_t max;
};

/* A line may have max bytes, its end ("\n" or "\r\n") not counted. */
void lines_init(struct lines *l, size_t max);
void lines_done(struct lines *l);

/* Calls on_line for each line that ends in the piece, empty ones left out. When on_line returns other than
 * 0 that is returned at once, the rest of the piece is dropped and *l is not touched again (so on_line may
 * free it then). -EFBIG for a line past the ceiling, -ENOMEM; after either, or a value of on_line's, only
 * lines_done() makes sense. */
MUST_USE int lines_feed(struct lines *l, struct str piece, int (*on_line)(void *arg, struct str line),
                        void *arg);

/* Bytes of an unfinished line: other than 0 at the end of a stream means that it was cut off. */
static inline size_t lines_left(const struct lines *l)
{
    return l->partial.n;
}

#endif
