#include "controller/assist/rules/objection.h"

#include "exporter/base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int objection_set(struct objection *ob, unsigned status, const char *field, const char *fmt, ...)
{
    char text[2048];
    va_list args;

    if (ob->status)
        return -EINVAL;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    ob->status = status;
    text_line(ob->field, sizeof(ob->field), str_of(field));
    text_line(ob->detail, sizeof(ob->detail), str_of(text));
    return -EINVAL;
}
