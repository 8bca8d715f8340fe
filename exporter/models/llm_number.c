#include "exporter/models/llm_number.h"

#include "exporter/num/num.h"

#include <ctype.h>

enum { DIGITS_MAX = 64 };

static bool number_splits(char c)
{
    return isspace((unsigned char)c) || (c && strchr("=\"'`(){}[]<>|*~$", c));
}

/* Copies the word without its thousands separators, which must leave groups of three digits; 0 if they do
 * not, or for a word that is too long. */
static size_t number_without_commas(struct str word, char out[DIGITS_MAX])
{
    size_t n = 0, group = 0;
    bool grouped = false;

    if (word.n > DIGITS_MAX)
        return 0;
    for (size_t i = 0; i < word.n; i++) {
        bool digit = isdigit((unsigned char)word.p[i]);
        if (word.p[i] == ',') {
            if (group == 0 || group > 3 || (grouped && group != 3))
                return 0;
            grouped = true;
            group = 0;
            continue;
        }
        if (grouped && !digit && group != 3)
            return 0;
        if (!digit)
            grouped = false;
        group = digit ? group + 1 : 0;
        out[n++] = word.p[i];
    }
    return grouped && group != 3 ? 0 : n;
}

/* Whether the word is a number: JSON's grammar, with a leading "+", a leading ".", and zeros in front too. */
static bool number_is(struct str word, double *ret)
{
    char text[DIGITS_MAX + 1], *p = text + 1;
    size_t n = number_without_commas(word, p);
    bool minus = n && p[0] == '-';

    if (n && (p[0] == '-' || p[0] == '+')) {
        p++;
        n--;
    }
    while (n > 1 && p[0] == '0' && isdigit((unsigned char)p[1])) {
        p++;
        n--;
    }
    if (n > 1 && p[0] == '.') {
        *--p = '0';
        n++;
    }
    if (n == 0 || !isdigit((unsigned char)p[0]) || num_parse((struct str){p, n}, ret) != NUM_OK)
        return false;
    *ret = minus ? -*ret : *ret;
    return true;
}

/* U+2212, which models write for a minus. */
static bool number_has_minus_sign(struct str word)
{
    return str_starts(word, STR("\xe2\x88\x92"));
}

static struct str number_strip(struct str word)
{
    while (word.n && strchr(".,;:!?%_", word.p[word.n - 1]))
        word.n--;
    while (word.n && (strchr(",;:!?_#", word.p[0]))) {
        word.p++;
        word.n--;
    }
    return word;
}

/* The part of "value:0.83" after the colon; not of a time, which has digits only. */
static struct str number_after_colon(struct str word)
{
    const char *colon = word.n ? memchr(word.p, ':', word.n) : NULL;

    if (!colon || !isalpha((unsigned char)word.p[0]))
        return word;
    return (struct str){colon + 1, word.n - (size_t)(colon + 1 - word.p)};
}

/* "1." or "2)" that begins a line and has text behind it. */
static bool number_is_ordinal(struct str text, const char *begin, struct str word)
{
    const char *end = text.p + text.n, *p = word.p + word.n;
    const char *line = begin;

    if (word.n < 2 || word.n > 3 || word.p[word.n - 1] != '.' ||
        !str_has_only((struct str){word.p, word.n - 1}, "") || !isdigit((unsigned char)word.p[0]))
        return false;
    while (line > text.p && (line[-1] == ' ' || line[-1] == '\t'))
        line--;
    if (line > text.p && line[-1] != '\n')
        return false;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return p < end && *p != '\n';
}

static bool number_read_word(struct str text, struct str word, double *ret)
{
    char plain[DIGITS_MAX + 1] = "-";

    if (number_is_ordinal(text, word.p, word))
        return false;
    word = number_strip(number_after_colon(word));
    if (number_has_minus_sign(word) && word.n - 2 < DIGITS_MAX) {
        memcpy(plain + 1, word.p + 3, word.n - 3);
        word = (struct str){plain, word.n - 2};
    }
    return number_is(word, ret);
}

bool llm_number(struct str text, double *ret)
{
    size_t at = 0;

    while (at < text.n) {
        size_t begin = at;
        while (at < text.n && !number_splits(text.p[at]))
            at++;
        if (at > begin && number_read_word(text, (struct str){text.p + begin, at - begin}, ret))
            return true;
        at++;
    }
    return false;
}
