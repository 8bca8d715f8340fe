/* Pure. Never recursive: a pattern with many stars costs at most the product of both lengths. */
#include "exporter/base/glob.h"

#include <stddef.h>

/* After a mismatch only the last star is extended: each earlier one has matched the least it can, and more
 * would not help. */
bool glob_match(const char *pattern, const char *text)
{
    const char *star = NULL, *retry = NULL;

    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            retry = text;
        } else if (*pattern == '?' || *pattern == *text) {
            /* One character of UTF-8. */
            do {
                text++;
            } while (*pattern == '?' && ((unsigned char)*text & 0xc0) == 0x80);
            pattern++;
        } else if (star) {
            pattern = star + 1;
            text = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
}
