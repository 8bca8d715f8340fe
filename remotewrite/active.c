#include "remotewrite/active.h"

#include "exporter/base/buf.h"
#include "exporter/base/hash.h"
#include "remotewrite/bytes.h"
#include "remotewrite/crc32c.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* "DSRWACT1", crc32c, count, length of the lane's name, 0; the name; then the labels of each series,
 * preceded by their length. */
enum { HEAD = 24, AT_CRC = 8, AT_COUNT = 12, AT_LANE = 16, FILE_BYTES_MAX = 1 << 30 };

static const char magic[] = "DSRWACT1";

int active_put(struct buf *into, struct str lane, const struct label_bytes *l)
{
    size_t mark = into->n;
    char head[HEAD] = {0}, *p;
    int r = buf_room(into, HEAD + lane.n + l->bytes_n + 4 * l->n, &p);

    if (r < 0)
        return r;
    memcpy(head, magic, 8);
    put_u32(head + AT_COUNT, (uint32_t)l->n);
    put_u32(head + AT_LANE, (uint32_t)lane.n);
    r = buf_put(into, head, HEAD) ?: buf_put_str(into, lane);
    for (size_t i = 0; i < l->n && r == 0; i++) {
        char length[4];

        put_u32(length, (uint32_t)label_bytes_at(l, i).n);
        r = buf_put(into, length, 4) ?: buf_put_str(into, label_bytes_at(l, i));
    }
    put_u32(into->p + mark + AT_CRC,
            crc32c(0, (struct str){into->p + mark + AT_COUNT, into->n - mark - AT_COUNT}));
    return r;
}

static int active_read_series(struct str rest, uint32_t n, struct label_bytes *l)
{
    const char *p = rest.p, *end = rest.p + rest.n;
    char *to;

    l->bytes = to = malloc(rest.n + 1);
    l->at = calloc((size_t)n + 1, sizeof(l->at[0]));
    if (!l->bytes || !l->at)
        return -ENOMEM;
    for (; l->n < n; l->n++) {
        uint32_t length;

        if (end - p < 4 || (length = get_u32(p)) > (size_t)(end - p) - 4)
            return -EBADMSG;
        to = mempcpy(to, p + 4, length);
        p += 4 + length;
        l->at[l->n + 1] = (size_t)(to - l->bytes);
    }
    l->bytes_n = (size_t)(to - l->bytes);
    return p == end ? 0 : -EBADMSG;
}

int active_read(struct str bytes, struct str *ret_lane, struct label_bytes **ret)
{
    CLEANUP(cleanup_label_bytes_free) struct label_bytes *l = NULL;
    uint32_t n, lane_n;
    int r;

    if (bytes.n < HEAD || memcmp(bytes.p, magic, 8) != 0)
        return -EBADMSG;
    n = get_u32(bytes.p + AT_COUNT);
    lane_n = get_u32(bytes.p + AT_LANE);
    if (lane_n > bytes.n - HEAD || n > (bytes.n - HEAD - lane_n) / 4 ||
        crc32c(0, (struct str){bytes.p + AT_COUNT, bytes.n - AT_COUNT}) != get_u32(bytes.p + AT_CRC))
        return -EBADMSG;
    l = calloc(1, sizeof(*l));
    if (!l)
        return -ENOMEM;
    r = active_read_series((struct str){bytes.p + HEAD + lane_n, bytes.n - HEAD - lane_n}, n, l);
    if (r < 0)
        return r;
    *ret_lane = (struct str){bytes.p + HEAD, lane_n};
    *ret = TAKE_PTR(l);
    return 0;
}

/* A score name may contain any character, so the file is named by its hash; the content has the name. */
static void active_file_name(char out[32], struct str lane)
{
    (void)snprintf(out, 32, "active.%016" PRIx64, hash_lasting(lane));
}

int active_save(struct spool *s, struct str lane, const struct label_bytes *l)
{
    BUF_AUTO(bytes, FILE_BYTES_MAX);
    char name[32];
    int r;

    active_file_name(name, lane);
    if (!l || l->n == 0) {
        spool_remove_file(s, name);
        return 0;
    }
    r = active_put(&bytes, lane, l);
    return r < 0 ? r : spool_write_file(s, name, buf_str(&bytes), true);
}

struct active_loading {
    struct spool *spool;
    int (*on_lane)(void *arg, struct str lane, struct label_bytes *l);
    void *arg;
};

/* Ignores a damaged file: its series get no markers and end after the receiver's lookback of five minutes. */
static int active_load_file(void *arg, const char *name)
{
    struct active_loading *v = arg;
    BUF_AUTO(bytes, FILE_BYTES_MAX);
    struct label_bytes *l;
    struct str lane;
    int r = spool_read_file(v->spool, name, &bytes) ?: active_read(buf_str(&bytes), &lane, &l);

    if (r == 0)
        return v->on_lane(v->arg, lane, l);
    return r == -ENOMEM ? r : 0;
}

int active_load(struct spool *s, int (*on_lane)(void *arg, struct str lane, struct label_bytes *l), void *arg)
{
    struct active_loading v = {s, on_lane, arg};

    return spool_each_file(s, "active.", active_load_file, &v);
}
