/* UTF-8 (RFC 3629; Unicode, chapter 3): no overlong forms, no surrogates, nothing over U+10FFFF. */
#pragma once

#include "exporter/base/str.h"

#include <stdint.h>

/* The length (1..4) of the well-formed character at s.p, or 0 if there is none (s empty or ill-formed). */
size_t utf8_char(struct str s);
/* The length of the ill-formed part at s.p, where utf8_char() returned 0, which one U+FFFD replaces (Unicode
 * 3.9): the longest prefix of a character, or a single byte. 0 only if s is empty. */
size_t utf8_bad_part(struct str s);
/* The offset of the first ill-formed byte; s.n if s is well formed. */
size_t utf8_valid_prefix(struct str s);
/* The longest prefix of at most `max` bytes that ends between characters. s must be well formed. */
struct str utf8_cut(struct str s, size_t max);
/* Whether the character of n bytes, as utf8_char() says, can move a terminal's cursor, end its line or turn
 * the direction of writing: C0, DEL, C1; U+061C, U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069. */
bool utf8_is_control(const char *character, size_t n);
/* Writes the character to out and returns its length; surrogates and values over U+10FFFF become U+FFFD. */
size_t utf8_write(uint32_t code_point, char out[4]);
