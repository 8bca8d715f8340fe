/* The file formats of the spool. A segment is a file of records, each with its own checksum:
 *
 *     "DSRWSEG1"                                              8 bytes, once
 *     magic crc32c length | kind lane_n ... lane payload      for each record, little-endian
 *
 * Damage costs only the damaged records: reading continues at the next intact one. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/num/num.h"

#include <endian.h>

/* Little-endian numbers of n bytes at any address. */

static inline void put_le(char *p, uint64_t v, size_t n)
{
    v = htole64(v);
    memcpy(p, &v, n);
}

static inline uint64_t get_le(const char *p, size_t n)
{
    uint64_t v = 0;

    memcpy(&v, p, n);
    return le64toh(v);
}

/* The head of a protobuf field of n bytes. */
static inline char *put_tag(char *p, unsigned number, size_t n)
{
    *p++ = (char)(number << 3 | 2);
    return put_varint(p, n);
}

/* CRC-32C (RFC 3720, appendix B.4). Continues the checksum `before`, 0 to start. At most 2 GiB. */
uint32_t crc32c(uint32_t before, struct str bytes);

/* ---- Segments ---- */

enum record_kind { RECORD_SAMPLES = 1, RECORD_MARKERS = 2 };

/* The description of a record, without its payload. */
struct record_head {
    uint64_t seq; /* increasing within a spool */
    enum record_kind kind;
    uint32_t samples;
    int64_t first_ms, last_ms; /* timestamps */
    struct str lane;           /* score name; empty for the program's own metrics */
};

enum { SEGMENT_HEAD = 8, RECORD_HEAD = 48, LANE_NAME_MAX = 1024, RECORD_MAX = 64 << 20 };

extern const char segment_magic[SEGMENT_HEAD + 1];

static inline size_t record_size(const struct record_head *h, size_t payload_n)
{
    return RECORD_HEAD + h->lane.n + payload_n;
}

/* Encodes the first RECORD_HEAD bytes of a record; in the file, the lane's name and the payload follow. */
void record_head_put(char out[RECORD_HEAD], const struct record_head *h, struct str payload);

enum segment_found {
    SEGMENT_RECORD,
    SEGMENT_DAMAGE, /* bytes [at, at + n) are lost */
    SEGMENT_TORN,   /* the file ends within the record at `at` */
    SEGMENT_END
};

struct segment_reader {
    struct str bytes; /* the whole file */
    size_t next;      /* 0 at first */
};

struct segment_item {
    size_t at, n; /* offset and length in the file */
    struct record_head head;
    struct str payload; /* like head.lane, a slice of the reader's bytes */
};

/* Reads the record at `at`; false if there is no intact one. */
bool record_read(struct str bytes, size_t at, struct segment_item *ret);
/* At the end *ret is not set. */
enum segment_found segment_next(struct segment_reader *r, struct segment_item *ret);
/* True for a segment written by another version of the program, whose records cannot be read. */
bool segment_has_other_version(struct str bytes);
/* Reads the head of the next record in the lost bytes [*at, end), which begin where a record begins:
 * plausible, but not verified. lane.p is NULL if its name is cut. False if there is none. */
bool segment_next_lost(struct str bytes, size_t *at, size_t end, struct record_head *ret);

/* ---- Read positions ---- */

/* How far each lane has been delivered, in three files written in turn, see spool_put_position(): a torn
 * write leaves the others intact. They are synced every second, not after each delivery: after a power cut,
 * records may be sent again. Versions that know only the first two files may send some again, too. */
struct position_lane {
    struct str name;
    uint64_t seq;    /* this record of the lane and all before it were delivered or dropped */
    int64_t last_ms; /* the last timestamp queued */
};

/* Writes such a file to an empty buffer. The generation grows by one with each write. -EFBIG. */
MUST_USE int position_write(struct buf *into, uint64_t generation, const struct position_lane *lanes,
                            size_t n);

struct position_reader {
    const char *next, *end;
    uint64_t generation;
    uint32_t lanes; /* still to be read */
};

/* Begins to read a file; false if it is damaged. */
bool position_open(struct position_reader *r, struct str bytes);
/* The next lane, whose name is a slice of the bytes; false after the last. */
bool position_next(struct position_reader *r, struct position_lane *ret);
