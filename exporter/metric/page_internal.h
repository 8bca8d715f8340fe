/* Inside of the page: its pieces, the row that they stand in, and the page itself. */
#ifndef DS_METRIC_PAGE_INTERNAL_H
#define DS_METRIC_PAGE_INTERNAL_H

#include "exporter/base/buf.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/page.h"
#include "exporter/metric/sink.h"

#include <pthread.h>

/* Immutable bytes, shared by pieces and scrapes. */
struct bytes {
    unsigned refs;   /* atomic */
    uint64_t *total; /* atomic: counts them while they are allocated */
    struct buf buf;
};

/* Text, and the same compressed: a scrape needs one of them. Immutable, shared by rows. */
struct piece {
    unsigned refs;    /* atomic */
    char *score_name; /* of a scorer's block; NULL for the others */
    struct bytes *text, *deflated;
    uint32_t crc, crc_shift;
};

/* What a scrape strings together, in order. Immutable. */
struct row {
    unsigned refs; /* atomic */
    size_t n;
    struct piece *own[2]; /* the program's metrics, after the blocks: as text, as OpenMetrics */
    uint32_t crc;         /* of the blocks' text */
    uint64_t text_bytes;  /* of the blocks */
    uint64_t memory;      /* allocated for all pieces */
    struct piece *pieces[];
};

struct page {
    struct sink sink;
    pthread_mutex_t lock;
    struct row *row;        /* the loop writes it under the lock and reads it without */
    struct row *next;       /* with what changed since; the loop's alone; NULL if nothing did */
    uint64_t version;       /* counts rows. Under the lock */
    uint64_t fresh;         /* bytes that `next` adds to the row. Under the lock */
    uint64_t allocated;     /* atomic: bytes of these rows' pieces, and of earlier ones' that scrapes hold */
    struct metrics *server; /* under the lock */
};

static const size_t PIECE_MAX_BYTES = (size_t)1 << 31; /* of text */

struct bytes *bytes_ref(struct bytes *b);
struct bytes *bytes_unref(struct bytes *b);

/* What a piece is made of. */
struct rendering {
    struct buf text, deflated;
    uint32_t crc, crc_shift;
};

/* Compresses text, which the rendering takes over. -ENOMEM, -EFBIG. */
MUST_USE int rendering_make(struct rendering *r, struct buf *text);
void rendering_done(struct rendering *r);
/* Takes the rendering's buffers over. score_name is copied; NULL for none. `total` counts its bytes.
 * -ENOMEM. */
MUST_USE int piece_of(struct piece **ret, uint64_t *total, struct rendering *r, const char *score_name);
/* Compresses text, which the piece takes over. score_name is copied; NULL for none. `total` counts its
 * bytes. -ENOMEM, -EFBIG. */
MUST_USE int piece_new(struct piece **ret, uint64_t *total, struct buf *text, const char *score_name);
struct piece *piece_unref(struct piece *p);
DEFINE_CLEANUP(struct piece, piece_unref)

/* Bytes allocated for it; 0 for NULL. */
uint64_t piece_memory(const struct piece *p);

/* A row with room for n pieces. NULL when out of memory. */
struct row *row_alloc(size_t n);
struct row *row_unref(struct row *row);
DEFINE_CLEANUP(struct row, row_unref)
void row_append(struct row *row, struct piece *p);
/* Takes over p, the program's own metrics in one of the two formats. */
void row_set_own(struct row *row, bool openmetrics, struct piece *p);
/* A copy of `old` with one scorer's block replaced, added or (block NULL) removed. Blocks are sorted by
 * score name, after the head. -ENOMEM. */
MUST_USE int row_with(struct row **ret, const struct row *old, const char *score_name, struct piece *block);

#endif
