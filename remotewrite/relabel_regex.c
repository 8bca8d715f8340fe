/* Which expressions are too much for regcomp(): it copies what is repeated, so that a few bytes can stand for gigabytes. RE2, which
 * Prometheus uses, refuses most of these too. */
#include "remotewrite/relabel.h"

enum { REGEX_MAX_BYTES = 1024, MAX_NESTED = 8, MAX_COPIES = 1000 };

/* Past a bracket expression that begins at p; `]` as its first character stands for itself. */
static const char *skip_brackets(const char *p, const char *end)
{
    p++;
    p += p < end && *p == '^';
    p += p < end && *p == ']';
    while (p < end && *p != ']')
        p++;
    return p;
}

/* The larger number of `{2}`, `{2,}` or `{2,5}`. */
static unsigned long bound(const char *p, const char *end)
{
    unsigned long most = 1, v = 0;

    for (p++; p < end && *p != '}'; p++) {
        v = *p >= '0' && *p <= '9' ? v * 10 + (unsigned long)(*p - '0') : 0;
        if (v > MAX_COPIES)
            return MAX_COPIES + 1;
        most = v > most ? v : most;
    }
    return most;
}

const char *relabel_regex_problem(struct str regex)
{
    unsigned long copies = 1;
    unsigned nested = 0;
    bool repeated = false;

    if (regex.n > REGEX_MAX_BYTES)
        return "longer than 1024 bytes";
    for (const char *p = regex.p, *end = p + regex.n; p < end; p++) {
        bool repeats = *p == '*' || *p == '+' || *p == '?' || *p == '{';

        if (repeats && repeated)
            return "a repetition of a repetition";
        repeated = repeats;
        nested += *p == '(';
        if (nested > MAX_NESTED)
            return "more than 8 groups";
        if (*p == '{' && (copies *= bound(p, end)) > MAX_COPIES)
            return "repetitions of more than 1000 in all";
        if (*p == '{')
            while (p + 1 < end && *p != '}')
                p++;
        else if (*p == '[')
            p = skip_brackets(p, end);
        else if (*p == '\\')
            p++;
    }
    return NULL;
}
