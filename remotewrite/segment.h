/* The file format of the spool. A segment is a file of records, each with its own checksum:
 *
 *     "DSRWSEG1"                                              8 bytes, once
 *     magic crc32c length | kind lane_n ... lane payload      for each record, little-endian
 *
 * Damage costs only the damaged records: reading continues at the next intact one. */
#ifndef DS_REMOTEWRITE_SEGMENT_H
#define DS_REMOTEWRITE_SEGMENT_H

#include "exporter/base/str.h"

#include <stdbool.h>
#include <stdint.h>

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
    size_t next;
};

struct segment_item {
    size_t at, n; /* offset and length in the file */
    struct record_head head;
    struct str payload; /* like head.lane, a slice of the reader's bytes */
};

/* Reads the record at `at`; false if there is no intact one. */
bool record_read(struct str bytes, size_t at, struct segment_item *ret);
void segment_reader_init(struct segment_reader *r, struct str bytes);
enum segment_found segment_next(struct segment_reader *r, struct segment_item *ret);
/* True for a segment written by another version of the program, whose records cannot be read. */
bool segment_has_other_version(struct str bytes);
/* Reads the head of the next record in the lost bytes [*at, end), which begin where a record begins. What
 * it says is plausible, but not verified; lane.p is NULL if its name is cut. False if there is none. */
bool segment_next_lost(struct str bytes, size_t *at, size_t end, struct record_head *ret);

#endif
