#include "exporter/base/base64.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

static int base64_digit(unsigned char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static bool base64_is_line_end(char c)
{
    return c == '\n' || c == '\r';
}

/* Whether the text after the digits is their padding and line ends. */
static bool base64_tail_fits(struct str tail, size_t digits)
{
    size_t padding = 0;

    for (size_t i = 0; i < tail.n; i++) {
        if (!base64_is_line_end(tail.p[i]) && tail.p[i] != '=')
            return false;
        padding += tail.p[i] == '=';
    }
    return digits % 4 != 1 && (digits + padding) % 4 == 0 && padding < 3;
}

int base64_decode(struct str text, struct buf *into)
{
    size_t i = 0, digits = 0, mark = into->n;
    uint32_t bits = 0;
    char *to;
    int r;

    if (!text.n) /* without a pointer, maybe */
        return 0;
    r = buf_room(into, text.n / 4 * 3 + 3, &to);
    /* The text may have line ends, or the ceiling may be exact. */
    if (r == -EFBIG)
        r = buf_room(into, into->max - into->n, &to);
    if (r < 0)
        return r;
    for (; i < text.n; i++) {
        int digit = base64_digit((unsigned char)text.p[i]);

        if (base64_is_line_end(text.p[i]))
            continue;
        if (digit < 0)
            break;
        bits = bits << 6 | (uint32_t)digit;
        if (digits++ % 4 == 0)
            continue;
        if (into->n == into->max) {
            buf_truncate(into, mark);
            return -EFBIG;
        }
        into->p[into->n++] = (char)(bits >> (6 - 2 * ((digits - 1) % 4)));
    }
    if (base64_tail_fits((struct str){text.p + i, text.n - i}, digits))
        return 0;
    buf_truncate(into, mark);
    return -EINVAL;
}

size_t base64_encode(struct str bytes, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *to = out;

    for (size_t i = 0; i < bytes.n; i += 3) {
        uint32_t bits = 0;

        for (size_t k = 0; k < 3; k++)
            bits = bits << 8 | (i + k < bytes.n ? (unsigned char)bytes.p[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            *to++ = i + k <= bytes.n ? digits[bits >> (18 - 6 * k) & 63] : '=';
    }
    return (size_t)(to - out);
}
