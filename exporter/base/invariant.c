/* The last line of a program that ends itself: a failed invariant, or no memory for something small. It uses
 * nothing else of the program, not even the log, since that may be what has failed. */
#include "exporter/base/invariant.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LAST_LINE_BYTES = 512 };

void die(const char *fmt, ...)
{
    char line[LAST_LINE_BYTES] = "dynamic-scoring: ";
    size_t n = strlen(line), room = sizeof(line) - n;
    va_list ap;
    int length;

    va_start(ap, fmt);
    length = vsnprintf(line + n, room, fmt, ap);
    va_end(ap);
    if (length > 0)
        n += (size_t)length < room ? (size_t)length : room - 1;
    line[n++] = '\n'; /* where the terminator was */
    if (write(STDERR_FILENO, line, n) < 0)
        abort(); /* nowhere to say it */
    abort();
}

void invariant_failed(const char *file, int line, const char *words)
{
    die("invariant failed: %s (%s:%d)", words, file, line);
}
