/* Private to tsdb*.c: what the lock guards. */
#ifndef DS_TSDB_TSDB_INTERNAL_H
#define DS_TSDB_TSDB_INTERNAL_H

#include "exporter/tsdb/chunk.h"
#include "exporter/tsdb/slab.h"
#include "exporter/tsdb/symbols.h"
#include "exporter/tsdb/tsdb.h"

#include <pthread.h>

enum { BLOCK_BYTES = 64, BLOCK_DATA = BLOCK_BYTES - 4, FIRST_DATA = 32 };

/* A chunk is a list of blocks. The first one holds the head and the begin of the stream. */
struct block {
    uint32_t next; /* of the same chunk; 0: the last */
    union {
        struct {
            uint32_t
                next_chunk; /* its first block; 0: this is the open chunk, or the last of an idle series */
            struct chunk_head head;
            unsigned char data[FIRST_DATA];
        } first;
        unsigned char data[BLOCK_DATA];
    };
};

struct series {
    uint32_t next; /* of the same name */
    uint32_t generation;
    uint32_t previous;
    uint32_t hash;
    uint32_t *pairs;          /* numbers of symbols: name, value, name, value, ... */
    uint32_t first_chunk;     /* the oldest; 0: no samples */
    uint32_t last_chunk;      /* the open one */
    uint32_t last_block;      /* of the open chunk */
    uint16_t n_pairs;         /* labels */
    struct chunk_codec codec; /* of the open chunk */
};

struct tsdb {
    pthread_mutex_t turn; /* taken before `lock` and released once that is held: first come, first served */
    pthread_mutex_t lock;
    struct tsdb_options options;
    struct tsdb_budget budget;
    struct symbols symbols;
    struct slab series, blocks;
    struct index index;
    int64_t age_ms;
    int64_t complete_from; /* samples before were lost or evicted for lack of memory */
    uint32_t generations;
    uint32_t name_symbol; /* of `__name__`; 0: none yet */
    uint32_t prune_at, evict_at;
    int64_t evict_before;
    unsigned readers; /* while any, no series is removed */
    uint64_t samples;
    struct tsdb_stats stats; /* counters only */
};

void tsdb_lock(struct tsdb *t);
void tsdb_unlock(struct tsdb *t);

static inline struct series *series_at(const struct tsdb *t, uint32_t id)
{
    return slab_at(&t->series, id);
}

static inline struct block *block_at(const struct tsdb *t, uint32_t id)
{
    return slab_at(&t->blocks, id);
}

/* The series of this number, NULL if there is none. */
static inline struct series *series_find(const struct tsdb *t, uint32_t id)
{
    struct series *s = slab_find(&t->series, id);

    return s && s->generation ? s : NULL;
}

/* Lock held, all below. */

/* Appends a sample that is later than the last one. -ENOBUFS, -ENOMEM: nothing is changed. */
MUST_USE int series_append(struct tsdb *t, struct series *s, int64_t t_ms, uint64_t v);
/* Drops the oldest chunk, which is not the open one; returns the number of its samples. */
unsigned series_drop_chunk(struct tsdb *t, struct series *s);
/* Drops chunks whose samples are all older than `before`, but not the open one; returns the number of
 * samples. */
uint64_t series_drop_before(struct tsdb *t, struct series *s, int64_t before);
/* Removes the series and all its samples. */
void series_remove(struct tsdb *t, uint32_t id);
/* Copies the bytes of the chunk's stream. */
void chunk_copy(const struct tsdb *t, uint32_t chunk, unsigned char *to);

/* Memory that new blocks may take, with the free ones of today's pages. */
static inline uint64_t tsdb_bytes_left(const struct tsdb *t)
{
    uint64_t unused = t->budget.max > t->budget.bytes ? t->budget.max - t->budget.bytes : 0;

    return unused + slab_spare(&t->blocks);
}

/* Lock not held: drops the oldest samples, if little memory is left. */
void tsdb_evict(struct tsdb *t, int64_t now);

#endif
