/* Owns nothing; any thread. */
#include "controller/assist/quantity.h"

#include "exporter/base/def.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool quantity_parse(const char *text, int64_t *ret)
{
    static const char *const decimal[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
    static const char *const binary[] = {"Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    const char *number = *text == '+' ? text + 1 : text;
    size_t digits = strspn(number, "0123456789.");
    long double factor = 0, v;
    char *end;

    if (digits == 0 || strchr("xX", number[digits] ? number[digits] : ' '))
        return false;
    v = strtold(number, &end);
    for (size_t i = 0; i < ARRAY_SIZE(decimal); i++)
        if (strcmp(end, decimal[i]) == 0)
            factor = powl(1000, (long double)i - 2); /* thousandths */
    for (size_t i = 0; i < ARRAY_SIZE(binary); i++)
        if (strcmp(end, binary[i]) == 0)
            factor = 1000 * powl(1024, (long double)i + 1);
    /* 0.1 is a little more than 0.1 in binary. */
    v = ceill(v * factor * (1 - 1e-17L));
    if (end < number + digits || (end > number + digits && *end) || factor == 0 || v > QUANTITY_MAX)
        return false;
    *ret = (int64_t)v;
    return true;
}
