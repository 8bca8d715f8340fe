/* Text from outside, made safe for one line of a log or a message. */
#ifndef DS_BASE_TEXT_H
#define DS_BASE_TEXT_H

#include "exporter/base/str.h"

/* Copies s as one line of well-formed UTF-8, at most size - 1 bytes (size >= 4) and a NUL. Longer text has
 * "..." in place of its middle, since an error often ends with what matters; a line of less than 64 bytes
 * has it at the end. Control characters become spaces. */
void text_line(char *out, size_t size, struct str s);
/* Like text_line(), for the raw bytes between the quotes of a JSON string. */
void text_line_json(char *out, size_t size, struct str raw);
/* "HTTP 502 Bad Gateway: <first line of the body>" into why. */
void text_http_status(char *out, size_t size, long status, struct str body);

#endif
