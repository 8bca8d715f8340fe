/* Owns nothing; whoever has the error calls it. */
#include "controller/assist/api_error.h"

#include "exporter/base/str.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

void api_error_at(struct api_error *ob, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(ob->field, sizeof(ob->field), fmt, args);
    va_end(args);
}

int api_error_set(struct api_error *ob, unsigned status, const char *fmt, ...)
{
    char text[2048];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    ob->status = status;
    text_line(ob->detail, sizeof(ob->detail), str_of(text));
    return -EINVAL;
}
