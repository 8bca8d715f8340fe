/* zlib's inflate() with the rules about ends that it leaves to its caller. */
#include "exporter/base/inflate.h"

#include "exporter/base/alloc.h"
#include "exporter/base/loop.h"

#include <errno.h>
#include <stdio.h>
#include <zlib.h>

enum { AUTOMATIC_HEADER = 32, GZIP_MAGIC = 0x1f };

struct inflate {
    z_stream z;
    bool ended; /* at the end of a member; gzip allows another one */
    char why[96];
    unsigned char piece[INFLATE_BYTES];
};

struct inflate *inflate_new(void)
{
    struct inflate *d = xcalloc(1, sizeof(*d));

    if (inflateInit2(&d->z, MAX_WBITS + AUTOMATIC_HEADER) != Z_OK)
        memory_exhausted(sizeof(*d));
    return d;
}

struct inflate *inflate_free(struct inflate *d)
{
    if (d)
        (void)inflateEnd(&d->z);
    free(d);
    return NULL;
}

static int inflate_fail(struct inflate *d, int code)
{
    if (code == Z_MEM_ERROR)
        memory_exhausted(sizeof(*d));
    if (d->z.total_out == 0 && d->z.total_in)
        (void)snprintf(d->why, sizeof(d->why), "is not gzip");
    else
        (void)snprintf(d->why, sizeof(d->why), "is damaged: %s", d->z.msg ? d->z.msg : "invalid data");
    return -EBADMSG;
}

/* After a member: another one starts with its magic byte. */
static int inflate_next_member(struct inflate *d, struct str rest)
{
    if ((unsigned char)rest.p[0] != GZIP_MAGIC || inflateReset(&d->z) != Z_OK) {
        (void)snprintf(d->why, sizeof(d->why), "is followed by other data");
        return -EBADMSG;
    }
    d->ended = false;
    return 0;
}

int inflate_next(struct inflate *d, struct str *rest, struct str *ret)
{
    int code, r;

    *ret = (struct str){0};
    if (d->ended && rest->n == 0)
        return 0;
    r = d->ended ? inflate_next_member(d, *rest) : 0;
    if (r < 0)
        return r;

    d->z.next_in = (unsigned char *)(uintptr_t)rest->p;
    d->z.avail_in = (unsigned)size_min(rest->n, INFLATE_BYTES);
    d->z.next_out = d->piece;
    d->z.avail_out = INFLATE_BYTES;
    code = inflate(&d->z, Z_NO_FLUSH);
    if (code == Z_BUF_ERROR) /* neither input nor output is left */
        return 0;
    if (code != Z_OK && code != Z_STREAM_END)
        return inflate_fail(d, code);
    d->ended = code == Z_STREAM_END;

    *rest =
        (struct str){(const char *)d->z.next_in, rest->n - (size_t)((const char *)d->z.next_in - rest->p)};
    *ret = (struct str){(const char *)d->piece, INFLATE_BYTES - d->z.avail_out};
    return 1;
}

int inflate_end(struct inflate *d)
{
    if (d->ended)
        return 0;
    (void)snprintf(d->why, sizeof(d->why), "ends early, after %lu bytes", d->z.total_in);
    return -EBADMSG;
}

const char *inflate_error(const struct inflate *d)
{
    return d->why;
}

int inflate_body(struct str body, struct buf *into, char **ret_why)
{
    CLEANUP(cleanup_inflate_free) struct inflate *d = inflate_new();
    struct buf_mark mark = buf_mark(into);
    size_t decoded = 0;
    struct str out;
    int r, put = 0;

    while (put == 0 && (r = inflate_next(d, &body, &out)) > 0) {
        buf_put_str(into, out);
        put = buf_failed(into);
        decoded += out.n;
        if (decoded >= WORKER_SLICE_BYTES) {
            worker_slice();
            decoded = 0;
        }
    }
    r = put ?: r ?: inflate_end(d);
    if (r < 0)
        buf_rollback(into, mark);
    if (r == -EBADMSG && ret_why)
        *ret_why = str_dup(str_of(inflate_error(d)));
    return r;
}
