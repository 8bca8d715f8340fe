/* zlib's inflate() with the rules about ends that it leaves to its caller. */
#include "exporter/base/inflate.h"

#include <errno.h>
#include <stdio.h>
#include <zlib.h>

enum { PIECE_BYTES = 64 << 10, AUTOMATIC_HEADER = 32, GZIP_MAGIC = 0x1f };

struct inflate {
    z_stream z;
    bool ended; /* at the end of a member; gzip allows another one */
    char why[96];
    unsigned char piece[PIECE_BYTES];
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
static int inflate_next_member(struct inflate *d)
{
    if (*d->z.next_in != GZIP_MAGIC || inflateReset(&d->z) != Z_OK) {
        (void)snprintf(d->why, sizeof(d->why), "is followed by other data");
        return -EBADMSG;
    }
    d->ended = false;
    return 0;
}

int inflate_put(struct inflate *d, struct str piece, int (*put)(void *arg, struct str out), void *arg)
{
    int code, r;

    d->z.next_in = (unsigned char *)(uintptr_t)piece.p;
    d->z.avail_in = (unsigned)piece.n;
    do {
        r = d->ended && d->z.avail_in ? inflate_next_member(d) : 0;
        if (r < 0)
            return r;
        d->z.next_out = d->piece;
        d->z.avail_out = PIECE_BYTES;
        code = d->ended ? Z_BUF_ERROR : inflate(&d->z, Z_NO_FLUSH);
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
            return inflate_fail(d, code);
        d->ended |= code == Z_STREAM_END;
        r = put(arg, (struct str){(char *)d->piece, PIECE_BYTES - d->z.avail_out});
        if (r != 0)
            return r;
    } while (d->z.avail_in || d->z.avail_out == 0);
    return 0;
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

static int inflate_append(void *arg, struct str out)
{
    return buf_put_str(arg, out);
}

int inflate_body(struct str body, struct buf *into, char **ret_why)
{
    CLEANUP(cleanup_inflate_free) struct inflate *d = inflate_new();
    size_t mark = into->n;
    int r = inflate_put(d, body, inflate_append, into);

    if (r == 0)
        r = inflate_end(d);
    if (r < 0)
        buf_truncate(into, mark);
    if (r == -EBADMSG && ret_why)
        *ret_why = str_dup(str_of(inflate_error(d)));
    return r;
}
