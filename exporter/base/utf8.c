#include "exporter/base/utf8.h"

#include "exporter/base/def.h"

static const uint64_t HIGH_BITS = 0x8080808080808080;

/* The number of bytes at s that are a prefix of a well-formed character of *ret_len bytes; 0 if no character
 * starts with the first byte. The narrower ranges of some second bytes (Unicode, table 3-7) exclude overlong
 * forms, surrogates and code points over U+10FFFF. */
static size_t utf8_prefix(struct str s, size_t *ret_len)
{
    const unsigned char *p = (const unsigned char *)s.p;
    unsigned low = 0x80, high = 0xbf;
    size_t len, i = 1;

    if (s.n == 0 || p[0] < 0xc2 || p[0] > 0xf4)
        return *ret_len = s.n > 0 && p[0] < 0x80;
    if (p[0] < 0xe0) {
        len = 2;
    } else if (p[0] < 0xf0) {
        len = 3;
        low = p[0] == 0xe0 ? 0xa0 : 0x80;
        high = p[0] == 0xed ? 0x9f : 0xbf;
    } else {
        len = 4;
        low = p[0] == 0xf0 ? 0x90 : 0x80;
        high = p[0] == 0xf4 ? 0x8f : 0xbf;
    }
    for (; i < len && i < s.n && p[i] >= low && p[i] <= high; i++)
        low = 0x80, high = 0xbf;
    *ret_len = len;
    return i;
}

size_t utf8_char(struct str s)
{
    size_t len, got = utf8_prefix(s, &len);

    return got == len ? len : 0;
}

size_t utf8_bad_part(struct str s)
{
    size_t len;

    return s.n ? size_max(utf8_prefix(s, &len), 1) : 0;
}

size_t utf8_valid_prefix(struct str s)
{
    size_t at = 0, len;
    uint64_t word;

    while (at < s.n) {
        if (s.n - at >= sizeof word) {
            memcpy(&word, s.p + at, sizeof word);
            if (!(word & HIGH_BITS)) {
                at += sizeof word;
                continue;
            }
        }
        len = utf8_char((struct str){s.p + at, s.n - at});
        if (len == 0)
            break;
        at += len;
    }
    return at;
}

struct str utf8_cut(struct str s, size_t max)
{
    if (s.n <= max)
        return s;
    while (max > 0 && ((unsigned char)s.p[max] & 0xc0) == 0x80)
        max--;
    return (struct str){s.p, max};
}

size_t utf8_write(uint32_t code_point, char out[4])
{
    uint32_t c = code_point;

    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        c = 0xfffd;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}
