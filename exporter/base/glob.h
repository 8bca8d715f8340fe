/* Patterns with * and ?, as masks and aliases have them. */
#ifndef DS_BASE_GLOB_H
#define DS_BASE_GLOB_H

#include <stdbool.h>

/* Whether the whole text matches: * stands for any characters, ? for one. Takes at most time proportional to
 * both lengths multiplied. */
bool glob_match(const char *pattern, const char *text);

#endif
