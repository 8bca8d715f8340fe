/* Encodes and decodes the bytes that format.h shows. Owns nothing. Any thread. What is read may be damaged or
 * hostile: reading stays inside the bytes, and goes forward only. */
#include "remotewrite/format.h"

#include <isa-l/crc.h>

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

uint32_t crc32c(uint32_t before, struct str bytes)
{
    return ~crc32_iscsi((unsigned char *)(uintptr_t)bytes.p, (int)bytes.n, ~before);
}

void record_head_put(char out[RECORD_HEAD], const struct record_head *h, struct str payload)
{
    struct str head = {out + AT_LENGTH, RECORD_HEAD - AT_LENGTH};

    memset(out, 0, RECORD_HEAD);
    memcpy(out + AT_MAGIC, RECORD_MAGIC, 4);
    put_le(out + AT_LENGTH, h->lane.n + payload.n, 4);
    out[AT_KIND] = (char)h->kind;
    put_le(out + AT_LANE, h->lane.n, 2);
    put_le(out + AT_SAMPLES, h->samples, 4);
    put_le(out + AT_SEQ, h->seq, 8);
    put_le(out + AT_FIRST, (uint64_t)h->first_ms, 8);
    put_le(out + AT_LAST, (uint64_t)h->last_ms, 8);
    put_le(out + AT_CRC, crc32c(crc32c(crc32c(0, head), h->lane), payload), 4);
}

/* Decodes a head without verifying it. What follows the head may go beyond the end of the bytes: then
 * there is no payload, and no lane if its name is cut. */
static bool record_head_get(struct str bytes, size_t at, struct segment_item *ret)
{
    const char *p = bytes.p + at;
    size_t length, lane_n, rest;

    if (bytes.n - at < RECORD_HEAD)
        return false;
    rest = bytes.n - at - RECORD_HEAD;
    length = get_le(p + AT_LENGTH, 4);
    lane_n = get_le(p + AT_LANE, 2);
    if (lane_n > length || lane_n > LANE_NAME_MAX)
        return false;
    *ret = (struct segment_item){
        .at = at,
        .n = RECORD_HEAD + length,
        .head = {.seq = get_le(p + AT_SEQ, 8),
                 .kind = (enum record_kind)p[AT_KIND],
                 .samples = (uint32_t)get_le(p + AT_SAMPLES, 4),
                 .first_ms = (int64_t)get_le(p + AT_FIRST, 8),
                 .last_ms = (int64_t)get_le(p + AT_LAST, 8)},
    };
    if (lane_n <= rest)
        ret->head.lane = (struct str){p + RECORD_HEAD, lane_n};
    if (length <= rest)
        ret->payload = (struct str){p + RECORD_HEAD + lane_n, length - lane_n};
    return p[AT_KIND] == RECORD_SAMPLES || p[AT_KIND] == RECORD_MARKERS;
}

bool record_read(struct str bytes, size_t at, struct segment_item *ret)
{
    const char *p = bytes.p + at;
    struct segment_item item;

    if (bytes.n - at < RECORD_HEAD || memcmp(p, RECORD_MAGIC, 4) != 0 || !record_head_get(bytes, at, &item) ||
        item.n > bytes.n - at ||
        crc32c(0, (struct str){p + AT_LENGTH, item.n - AT_LENGTH}) != get_le(p + AT_CRC, 4))
        return false;
    *ret = item;
    return true;
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

/* True if the bytes from `at` are the beginning of a record, or of the file's head, that was not finished. */
static bool record_is_cut(struct str bytes, size_t at)
{
    const char *p = bytes.p + at;
    size_t n = bytes.n - at;

    if (at == 0 && n < SEGMENT_HEAD)
        return memcmp(p, segment_magic, n) == 0;
    if (memcmp(p, RECORD_MAGIC, size_min(4, n)) != 0)
        return false;
    return n < RECORD_HEAD || get_le(p + AT_LENGTH, 4) > n - RECORD_HEAD;
}

enum segment_found segment_next(struct segment_reader *r, struct segment_item *ret)
{
    size_t at = r->next, found;

    if (at == 0 && r->bytes.n >= SEGMENT_HEAD && memcmp(r->bytes.p, segment_magic, SEGMENT_HEAD) == 0)
        at = SEGMENT_HEAD;
    if (at == r->bytes.n)
        return SEGMENT_END;
    if (record_read(r->bytes, at, ret)) {
        r->next = at + ret->n;
        return SEGMENT_RECORD;
    }
    found = find_record(r->bytes, at + 1);
    *ret = (struct segment_item){.at = at, .n = found - at};
    r->next = found;
    return found == r->bytes.n && record_is_cut(r->bytes, at) ? SEGMENT_TORN : SEGMENT_DAMAGE;
}

bool segment_has_other_version(struct str bytes)
{
    char version = bytes.n >= SEGMENT_HEAD ? bytes.p[SEGMENT_HEAD - 1] : '1';

    return memcmp(bytes.p, segment_magic, size_min(bytes.n, SEGMENT_HEAD - 1)) == 0 && version != '1' &&
           version >= '0' && version <= '9';
}

bool segment_next_lost(struct str bytes, size_t *at, size_t end, struct record_head *ret)
{
    struct str lost = {bytes.p, end};
    struct segment_item item;

    while (*at < end) {
        const char *next;

        /* Each sample takes more than a byte. */
        if (record_head_get(lost, *at, &item) && item.head.samples <= item.n - RECORD_HEAD &&
            (item.payload.p || record_is_cut(bytes, *at))) {
            *at = size_min(end, *at + item.n);
            *ret = item.head;
            return true;
        }
        next = memmem(lost.p + *at + 1, end - *at - 1, RECORD_MAGIC, 4);
        *at = next ? (size_t)(next - lost.p) : end;
    }
    return false;
}

/* "DSRWPOS1", crc32c, count, generation; then for each lane: seq, last_ms, length of the name, name. */
enum { POSITION_HEAD = 24, LANE_HEAD = 18, POSITION_CRC = 8, POSITION_COUNT = 12, POSITION_GENERATION = 16 };

static const char position_magic[] = "DSRWPOS1";

static uint32_t position_crc(struct str bytes)
{
    return crc32c(0, (struct str){bytes.p + POSITION_COUNT, bytes.n - POSITION_COUNT});
}

int position_write(struct buf *into, uint64_t generation, const struct position_lane *lanes, size_t n)
{
    char head[POSITION_HEAD] = {0};

    memcpy(head, position_magic, 8);
    put_le(head + POSITION_GENERATION, generation, 8);
    put_le(head + POSITION_COUNT, n, 4);
    buf_put(into, head, sizeof(head));
    for (size_t i = 0; i < n; i++) {
        char lane[LANE_HEAD];

        put_le(lane, lanes[i].seq, 8);
        put_le(lane + 8, (uint64_t)lanes[i].last_ms, 8);
        put_le(lane + 16, lanes[i].name.n, 2);
        buf_put(into, lane, sizeof(lane));
        buf_put_str(into, lanes[i].name);
    }
    if (buf_failed(into) == 0)
        put_le(into->p + POSITION_CRC, position_crc(buf_str(into)), 4);
    return buf_failed(into);
}

bool position_next(struct position_reader *r, struct position_lane *ret)
{
    size_t n;

    if (r->lanes == 0 || r->end - r->next < LANE_HEAD)
        return false;
    n = get_le(r->next + 16, 2);
    if ((size_t)(r->end - r->next) - LANE_HEAD < n)
        return false;
    *ret = (struct position_lane){.seq = get_le(r->next, 8),
                                  .last_ms = (int64_t)get_le(r->next + 8, 8),
                                  .name = {r->next + LANE_HEAD, n}};
    r->next += LANE_HEAD + n;
    r->lanes--;
    return true;
}

bool position_open(struct position_reader *r, struct str bytes)
{
    struct position_reader all;
    struct position_lane lane;

    if (bytes.n < POSITION_HEAD || memcmp(bytes.p, position_magic, 8) != 0)
        return false;
    *r = all = (struct position_reader){.next = bytes.p + POSITION_HEAD,
                                        .end = bytes.p + bytes.n,
                                        .generation = get_le(bytes.p + POSITION_GENERATION, 8),
                                        .lanes = (uint32_t)get_le(bytes.p + POSITION_COUNT, 4)};
    while (position_next(&all, &lane))
        ;
    /* The file is not truncated, so older bytes may follow the last lane. */
    return all.lanes == 0 && position_crc((struct str){bytes.p, (size_t)(all.next - bytes.p)}) ==
                                 get_le(bytes.p + POSITION_CRC, 4);
}
