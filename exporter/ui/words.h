/* Amounts in words, for printf. Pure; any thread. */
#pragma once

#include <stdint.h>

/* A part of a line, for printf. */
struct phrase {
    char s[80];
};

/* "0.42 ms", "85 ms", "1.25 s", "2m 5s", "4d 3h". */
struct phrase words_seconds(double s);
/* "1 score", "1,234,567 scores". */
struct phrase words_count(uint64_t n, const char *one, const char *many);
