/* Pure, any thread. One rule for what is well-formed, so that no two readers differ. */
#include "exporter/base/utf8.h"

static const uint64_t HIGH_BITS = 0x8080808080808080;

/* The number of bytes at s that are a prefix of a well-formed character of *ret_len bytes; 0 if no character
 * starts with the first byte. The narrower ranges of some second bytes (Unicode, table 3-7) exclude overlong
 * forms, surrogates and code points over U+10FFFF. */
static size_t utf8_prefix(struct str s, size_t *ret_len)
{
    const unsigned char *p = (const unsigned char *)s.p;
    unsigned low, high;
    size_t i = 1;

    if (s.n == 0 || p[0] < 0xc2 || p[0] > 0xf4)
        return *ret_len = s.n > 0 && p[0] < 0x80;
    *ret_len = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    for (; i < *ret_len && i < s.n && p[i] >= low && p[i] <= high; i++)
        low = 0x80, high = 0xbf;
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
    size_t at = 0, len = 1;

    while (len && at < s.n) {
        uint64_t word = HIGH_BITS;

        if (s.n - at >= sizeof word)
            memcpy(&word, s.p + at, sizeof word);
        len = word & HIGH_BITS ? utf8_char((struct str){s.p + at, s.n - at}) : sizeof word;
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

bool utf8_is_control(const char *character, size_t n)
{
    const unsigned char *p = (const unsigned char *)character;

    if (n == 1)
        return p[0] < 0x20 || p[0] == 0x7f;
    if (n == 2)
        return (p[0] == 0xc2 && p[1] < 0xa0) || (p[0] == 0xd8 && p[1] == 0x9c);
    if (n == 3 && p[0] == 0xe2)
        return (p[1] == 0x80 && (p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xa8 && p[2] <= 0xae))) ||
               (p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9);
    return false;
}

size_t utf8_write(uint32_t code_point, char out[4])
{
    static const unsigned char first[] = {0, 0xc0, 0xe0, 0xf0};
    bool is_character = code_point <= 0x10ffff && (code_point < 0xd800 || code_point > 0xdfff);
    uint32_t c = is_character ? code_point : 0xfffd;
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(first[n - 1] | c);
    return n;
}
