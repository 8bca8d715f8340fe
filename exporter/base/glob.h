/* Patterns of names, as masks and aliases have them. */
#pragma once

#include <stdbool.h>

/* Whether the whole text matches the pattern: * stands for any characters, ?
 * for one. Takes at most time proportional to both lengths multiplied. */
bool glob_match(const char *pattern, const char *text);
