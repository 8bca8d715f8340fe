#include "controller/assist/rules/quantity.h"

#include "exporter/base/def.h"

enum { MAX_DIGITS = 18 };

static const struct {
    const char *suffix;
    int tens;  /* power of ten */
    int shift; /* power of two */
} units[] = {
    {"", 0, 0},    {"n", -9, 0},  {"u", -6, 0},  {"m", -3, 0},  {"k", 3, 0},   {"M", 6, 0},
    {"G", 9, 0},   {"T", 12, 0},  {"P", 15, 0},  {"E", 18, 0},  {"Ki", 0, 10}, {"Mi", 0, 20},
    {"Gi", 0, 30}, {"Ti", 0, 40}, {"Pi", 0, 50}, {"Ei", 0, 60},
};

static bool is_decimal(char c)
{
    return c >= '0' && c <= '9';
}

/* "e3", "E-2" */
static bool exponent_parse(struct str s, int *ret)
{
    uint64_t n;
    bool is_negative;

    if (s.n < 2 || (s.p[0] != 'e' && s.p[0] != 'E'))
        return false;
    is_negative = s.p[1] == '-';
    if (is_negative || s.p[1] == '+')
        s = (struct str){s.p + 1, s.n - 1};
    if (!str_to_u64((struct str){s.p + 1, s.n - 1}, &n) || n > 99)
        return false;
    *ret = is_negative ? -(int)n : (int)n;
    return true;
}

static bool unit_parse(struct str s, int *ret_tens, int *ret_shift)
{
    for (size_t i = 0; i < ARRAY_SIZE(units); i++)
        if (str_eq(s, str_of(units[i].suffix))) {
            *ret_tens = units[i].tens;
            *ret_shift = units[i].shift;
            return true;
        }
    *ret_shift = 0;
    return exponent_parse(s, ret_tens);
}

bool quantity_parse(struct str text, int64_t *ret)
{
    unsigned __int128 v = 0;
    size_t at = text.n > 0 && text.p[0] == '+' ? 1 : 0, digits = 0;
    int tens, shift, decimals = 0;
    bool has_point = false;

    for (; at < text.n && (is_decimal(text.p[at]) || (text.p[at] == '.' && !has_point)); at++) {
        if (text.p[at] == '.') {
            has_point = true;
            continue;
        }
        v = v * 10 + (unsigned)(text.p[at] - '0');
        decimals += has_point;
        if (++digits > MAX_DIGITS)
            return false;
    }
    if (digits == 0 || !unit_parse((struct str){text.p + at, text.n - at}, &tens, &shift))
        return false;
    /* At most 60 bits by 60 bits here, and by ten while it is within the bound. */
    v <<= shift;
    for (tens += 3 - decimals; tens > 0 && v > 0 && v <= QUANTITY_MAX; tens--)
        v *= 10;
    for (; tens < 0 && v > 0; tens++)
        v = (v + 9) / 10;
    if (v > QUANTITY_MAX)
        return false;
    *ret = (int64_t)v;
    return true;
}
