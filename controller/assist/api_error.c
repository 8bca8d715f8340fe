/* Owns nothing; whoever has the error calls it. */
#include "controller/assist/api_error.h"

#include "exporter/base/str.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

void api_error_at(struct api_error *error, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(error->field, sizeof(error->field), fmt, args);
    va_end(args);
}

int api_error_set(struct api_error *error, unsigned status, const char *fmt, ...)
{
    char text[2048];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    error->status = status;
    text_line(error->detail, sizeof(error->detail), str_of(text));
    return -EINVAL;
}
