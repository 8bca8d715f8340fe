/* Splits a stream into lines, as a watch sends its events. Each byte is scanned once, a line within one
 * piece is not copied, and the buffer between pieces has a ceiling. */
#ifndef DS_KUBE_LINES_H
#define DS_KUBE_LINES_H

#include "exporter/base/buf.h"

struct lines {
    struct buf partial; /* the start of an unfinished line */
    size_t max;
};

/* max: bytes per line, without its "\n" or "\r\n". */
void lines_init(struct lines *l, size_t max);
void lines_done(struct lines *l);

/* Calls on_line for each non-empty line that ends in the piece. If on_line returns other than 0, returns
 * that at once, drops the rest of the piece and does not touch *l again, so that on_line may free it.
 * -EFBIG for a line over the ceiling, -ENOMEM. After any of these only lines_done() may follow. */
MUST_USE int lines_feed(struct lines *l, struct str piece, int (*on_line)(void *arg, struct str line),
                        void *arg);

#endif
