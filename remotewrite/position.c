#include "remotewrite/position.h"

#include "remotewrite/bytes.h"
#include "remotewrite/crc32c.h"

#include <errno.h>

/* "DSRWPOS1", crc32c, count, generation; then for each lane: seq, last_ms, length of the name, name. */
enum { HEAD = 24, LANE_HEAD = 18, AT_CRC = 8, AT_COUNT = 12, AT_GENERATION = 16 };

static const char magic[] = "DSRWPOS1";

int position_put(struct buf *into, uint64_t generation, const struct position_lane *lanes, size_t n)
{
    size_t mark = into->n;
    char head[HEAD] = {0}, lane[LANE_HEAD];
    int r;

    memcpy(head, magic, 8);
    put_u32(head + AT_COUNT, (uint32_t)n);
    put_u64(head + AT_GENERATION, generation);
    r = buf_put(into, head, sizeof(head));
    for (size_t i = 0; i < n && r == 0; i++) {
        put_u64(lane, lanes[i].seq);
        put_u64(lane + 8, (uint64_t)lanes[i].last_ms);
        put_u16(lane + 16, (uint16_t)lanes[i].name.n);
        r = buf_put(into, lane, sizeof(lane)) ?: buf_put_str(into, lanes[i].name);
    }
    if (r < 0) {
        buf_truncate(into, mark);
        return r;
    }
    put_u32(into->p + mark + AT_CRC,
            crc32c(0, (struct str){into->p + mark + AT_COUNT, into->n - mark - AT_COUNT}));
    return 0;
}

/* The file is not truncated, so older bytes may follow the last lane. */
static const char *position_next_lane(const char *p, const char *end, struct position_lane *ret)
{
    size_t n;

    if (end - p < LANE_HEAD)
        return NULL;
    n = get_u16(p + 16);
    if ((size_t)(end - p) - LANE_HEAD < n)
        return NULL;
    *ret = (struct position_lane){
        .seq = get_u64(p), .last_ms = (int64_t)get_u64(p + 8), .name = {p + LANE_HEAD, n}};
    return p + LANE_HEAD + n;
}

int position_generation(struct str bytes, uint64_t *ret)
{
    const char *p = bytes.p + HEAD, *end = bytes.p + bytes.n;
    struct position_lane lane;

    if (bytes.n < HEAD || memcmp(bytes.p, magic, 8) != 0)
        return -EBADMSG;
    for (uint32_t i = get_u32(bytes.p + AT_COUNT); i; i--) {
        p = position_next_lane(p, end, &lane);
        if (!p)
            return -EBADMSG;
    }
    if (crc32c(0, (struct str){bytes.p + AT_COUNT, (size_t)(p - bytes.p) - AT_COUNT}) !=
        get_u32(bytes.p + AT_CRC))
        return -EBADMSG;
    *ret = get_u64(bytes.p + AT_GENERATION);
    return 0;
}

int position_read(struct str bytes, int (*on_lane)(void *arg, const struct position_lane *l), void *arg)
{
    const char *p = bytes.p + HEAD;
    struct position_lane lane;
    uint64_t generation;
    int r = position_generation(bytes, &generation);

    for (uint32_t i = r == 0 ? get_u32(bytes.p + AT_COUNT) : 0; i && r == 0; i--) {
        p = position_next_lane(p, bytes.p + bytes.n, &lane);
        r = p ? on_lane(arg, &lane) : -EBADMSG;
    }
    return r;
}
