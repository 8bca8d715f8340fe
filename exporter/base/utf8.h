/* UTF-8 as RFC 3629 and Unicode chapter 3 define it: no overlong forms, no surrogates, nothing past
 * U+10FFFF. */
#ifndef DS_BASE_UTF8_H
#define DS_BASE_UTF8_H

#include "exporter/base/str.h"

#include <stdint.h>

/* The length (1..4) of the well-formed character at s.p, or 0 when there is none (s empty or ill-formed). */
size_t utf8_char(struct str s);
/* The length of the ill-formed part at s.p, where utf8_char() found no character: the longest beginning of
 * one, or a single byte. Replacing each such part by one U+FFFD is what Unicode 3.9 and browsers do. 0
 * only when s is empty. */
size_t utf8_bad_part(struct str s);
/* Where the first ill-formed byte is, or s.n when all is well formed. */
size_t utf8_valid_prefix(struct str s);
/* The longest prefix of at most `max` bytes that ends between characters. s is well formed. */
struct str utf8_cut(struct str s, size_t max);
/* Writes the character to out and returns its length; surrogates and values past U+10FFFF become U+FFFD. */
size_t utf8_encode(uint32_t code_point, char out[4]);

#endif
