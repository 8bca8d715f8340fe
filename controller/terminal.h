/* What commands print for people and programs, so that nothing that others have written can move a cursor. */
#pragma once

#include "exporter/base/str.h"

#include <stdbool.h>
#include <stdio.h>

/* Prints the text; r is the outcome of making it. False, and stderr says why, if it cannot be printed. */
bool terminal_print(struct str text, int r);
/* The same for JSON: what could move a terminal's cursor is escaped, which means the same to programs. */
bool terminal_print_json(struct str text, int r);
/* The same for lines that people read, parts of which others decide: control and bidirectional characters
 * and ill-formed UTF-8 become U+FFFD, so that no name or message can move the cursor or hide a line. */
bool terminal_print_lines(FILE *to, struct str text);
/* Prints such lines by a format. */
void terminal_printf(FILE *to, const char *fmt, ...) PRINTF_LIKE(2, 3);
