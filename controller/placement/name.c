#include "controller/placement/name.h"

static bool name_is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

size_t object_name(struct str score_name, char out[OBJECT_NAME_MAX + 1])
{
    size_t n = 0;

    for (size_t i = 0; i < score_name.n && n < OBJECT_NAME_MAX; i++) {
        char c = score_name.p[i];

        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if (name_is_alnum(c)) {
            out[n++] = c;
        } else if (n > 0 && name_is_alnum(out[n - 1])) {
            out[n++] = c == '.' ? '.' : '-';
        } else if (n > 0 && c == '.') { /* "a-.b" is invalid, "a.b" is not */
            out[n - 1] = '.';
        }
    }
    while (n > 0 && !name_is_alnum(out[n - 1]))
        n--;
    if (n == 0) {
        memcpy(out, "score", 5);
        n = 5;
    }
    out[n] = '\0';
    return n;
}
