#include "remotewrite/segment.h"

#include "remotewrite/bytes.h"
#include "remotewrite/crc32c.h"

const char segment_magic[SEGMENT_HEAD + 1] = "DSRWSEG1";

#define RECORD_MAGIC "\xd5RW\x1a"

/* Offsets of the fields in a record's head. */
enum {
    AT_MAGIC = 0,
    AT_CRC = 4, /* of everything after it */
    AT_LENGTH = 8,
    AT_KIND = 12,
    AT_LANE = 14,
    AT_SAMPLES = 16,
    AT_SEQ = 24,
    AT_FIRST = 32,
    AT_LAST = 40,
};

void record_head_put(char out[RECORD_HEAD], const struct record_head *h, struct str payload)
{
    uint32_t crc;

    memset(out, 0, RECORD_HEAD);
    memcpy(out + AT_MAGIC, RECORD_MAGIC, 4);
    put_u32(out + AT_LENGTH, (uint32_t)(h->lane.n + payload.n));
    out[AT_KIND] = (char)h->kind;
    put_u16(out + AT_LANE, (uint16_t)h->lane.n);
    put_u32(out + AT_SAMPLES, h->samples);
    put_u64(out + AT_SEQ, h->seq);
    put_u64(out + AT_FIRST, (uint64_t)h->first_ms);
    put_u64(out + AT_LAST, (uint64_t)h->last_ms);
    crc = crc32c(0, (struct str){out + AT_LENGTH, RECORD_HEAD - AT_LENGTH});
    crc = crc32c(crc, h->lane);
    put_u32(out + AT_CRC, crc32c(crc, payload));
}

void segment_reader_init(struct segment_reader *r, struct str bytes)
{
    *r = (struct segment_reader){.bytes = bytes};
}

bool record_read(struct str bytes, size_t at, struct segment_item *ret)
{
    const char *p = bytes.p + at;
    size_t length, lane_n;

    if (bytes.n - at < RECORD_HEAD || memcmp(p, RECORD_MAGIC, 4) != 0)
        return false;
    length = get_u32(p + AT_LENGTH);
    lane_n = get_u16(p + AT_LANE);
    if (length > bytes.n - at - RECORD_HEAD || lane_n > length || lane_n > LANE_NAME_MAX)
        return false;
    if (crc32c(0, (struct str){p + AT_LENGTH, RECORD_HEAD - AT_LENGTH + length}) != get_u32(p + AT_CRC))
        return false;
    *ret = (struct segment_item){
        .at = at,
        .n = RECORD_HEAD + length,
        .head = {.seq = get_u64(p + AT_SEQ),
                 .kind = (enum record_kind)p[AT_KIND],
                 .samples = get_u32(p + AT_SAMPLES),
                 .first_ms = (int64_t)get_u64(p + AT_FIRST),
                 .last_ms = (int64_t)get_u64(p + AT_LAST),
                 .lane = {p + RECORD_HEAD, lane_n}},
        .payload = {p + RECORD_HEAD + lane_n, length - lane_n},
    };
    return p[AT_KIND] == RECORD_SAMPLES || p[AT_KIND] == RECORD_MARKERS;
}

/* The offset of the next intact record, or of the end. */
static size_t find_record(struct str bytes, size_t at)
{
    struct segment_item item;
    const char *found;

    for (; at < bytes.n && (found = memmem(bytes.p + at, bytes.n - at, RECORD_MAGIC, 4)); at++) {
        at = (size_t)(found - bytes.p);
        if (record_read(bytes, at, &item))
            return at;
    }
    return bytes.n;
}

enum segment_found segment_next(struct segment_reader *r, struct segment_item *ret)
{
    size_t at = r->next, found;

    if (at == 0 && r->bytes.n >= SEGMENT_HEAD && memcmp(r->bytes.p, segment_magic, SEGMENT_HEAD) == 0)
        at = SEGMENT_HEAD;
    *ret = (struct segment_item){.at = at};
    if (at == r->bytes.n) {
        r->next = at;
        return SEGMENT_END;
    }
    if (record_read(r->bytes, at, ret)) {
        r->next = at + ret->n;
        return SEGMENT_RECORD;
    }
    found = find_record(r->bytes, at + 1);
    *ret = (struct segment_item){.at = at, .n = found - at};
    r->next = found;
    return found < r->bytes.n ? SEGMENT_DAMAGE : SEGMENT_TORN;
}
