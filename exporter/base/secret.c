#include "exporter/base/secret.h"

void secret_done(struct buf *b)
{
    if (b->p)
        explicit_bzero(b->p, b->cap);
    buf_done(b);
}

char *secret_free(char *s)
{
    if (s)
        explicit_bzero(s, strlen(s));
    free(s);
    return NULL;
}

const char *secret_token(struct str value, struct str *ret)
{
    struct str token = str_trim(value);

    if (token.n == 0)
        return "empty";
    for (size_t i = 0; i < token.n; i++)
        if (token.p[i] <= ' ' || token.p[i] > '~')
            return "not a token: it contains white space or characters not allowed in a header";
    *ret = token;
    return NULL;
}
