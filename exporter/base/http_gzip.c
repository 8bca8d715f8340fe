/* Content-Encoding gzip and deflate (zlib's format). libcurl could decode them, but it takes a body that was
 * cut short for a complete one, and does not notice bytes after the end. */
#include "exporter/base/http_internal.h"

#include <zlib.h>

enum { PIECE_BYTES = 64 << 10, AUTOMATIC_HEADER = 32 };

struct http_gzip {
    z_stream z;
    bool ended; /* at the end of a member; gzip allows another one */
    unsigned char piece[PIECE_BYTES];
};

static struct http_gzip *http_gzip_new(void)
{
    struct http_gzip *g = calloc(1, sizeof(*g));

    if (g && inflateInit2(&g->z, MAX_WBITS + AUTOMATIC_HEADER) != Z_OK) {
        free(g);
        return NULL;
    }
    return g;
}

struct http_gzip *http_gzip_free(struct http_gzip *g)
{
    if (g)
        (void)inflateEnd(&g->z);
    free(g);
    return NULL;
}

static bool gzip_fail(struct http_call *c, int code)
{
    const struct http_gzip *g = c->gzip;

    if (code == Z_MEM_ERROR)
        http_fail(c, HTTP_MEMORY, "out of memory for the response");
    else if (g->z.total_out == 0 && g->z.total_in)
        http_fail(c, HTTP_BROKEN, "response has Content-Encoding gzip, but its body is not gzip");
    else
        http_fail(c, HTTP_BROKEN, "gzip body of the response is damaged: %s",
                  g->z.msg ? g->z.msg : "invalid data");
    return false;
}

/* After a member: another one starts with its magic byte. */
static bool gzip_next_member(struct http_call *c)
{
    struct http_gzip *g = c->gzip;

    if (*g->z.next_in != 0x1f || inflateReset(&g->z) != Z_OK) {
        http_fail(c, HTTP_BROKEN, "gzip body of the response is followed by other data");
        return false;
    }
    g->ended = false;
    return true;
}

bool http_gzip_put(struct http_call *c, struct str piece, bool (*put)(struct http_call *c, struct str piece))
{
    struct http_gzip *g = c->gzip ? c->gzip : (c->gzip = http_gzip_new());
    int code;

    if (!g) {
        http_fail(c, HTTP_MEMORY, "out of memory for the response");
        return false;
    }
    g->z.next_in = (unsigned char *)(uintptr_t)piece.p;
    g->z.avail_in = (unsigned)piece.n;
    do {
        if (g->ended && g->z.avail_in && !gzip_next_member(c))
            return false;
        g->z.next_out = g->piece;
        g->z.avail_out = PIECE_BYTES;
        code = g->ended ? Z_BUF_ERROR : inflate(&g->z, Z_NO_FLUSH);
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
            return gzip_fail(c, code);
        g->ended |= code == Z_STREAM_END;
        if (!put(c, (struct str){(char *)g->piece, PIECE_BYTES - g->z.avail_out}))
            return false;
    } while (g->z.avail_in || g->z.avail_out == 0);
    return true;
}

bool http_gzip_end(struct http_call *c)
{
    if (!c->gzip || c->gzip->ended)
        return true;
    http_fail(c, HTTP_BROKEN, "gzip body of the response ends early, after %lu bytes", c->gzip->z.total_in);
    return false;
}
