/* Prometheus matches with RE2's grammar. PCRE2 takes nearly all of it and more; what is more is refused, so
 * that a query means the same in both. */
#include "exporter/promql/parser.h"

static const char look_around[] =
    "look-around and other groups beyond (?:...), (?P<name>...) and (?flags:...)";

static char re_at(struct str s, size_t at)
{
    return at < s.n ? s.p[at] : '\0';
}

static bool is_digit_at(struct str s, size_t at)
{
    return re_at(s, at) >= '0' && re_at(s, at) <= '9';
}

/* What follows a backslash. */
static const char *refuses_escape(struct str s, size_t at)
{
    static const char letters[] = "abfnrtvxzABQEdDsSwWpP";
    char c = re_at(s, at);

    if (c >= '1' && c <= '9') /* two octal digits are a character */
        return c < '8' && is_digit_at(s, at + 1) && re_at(s, at + 1) < '8' ? NULL : "back-references";
    if (c == 'g' || c == 'k')
        return "back-references";
    if (((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) && !strchr(letters, c))
        return "escape sequences of PCRE2 only";
    return NULL;
}

/* What follows "(?". */
static const char *refuses_group(struct str s, size_t at)
{
    if (re_at(s, at) == 'P')
        return re_at(s, at + 1) == '<' ? NULL : look_around;
    if (re_at(s, at) == '<')
        return re_at(s, at + 1) == '=' || re_at(s, at + 1) == '!' ? look_around : NULL;
    while (at < s.n && s.p[at] != '\0' && strchr("imsU-", s.p[at]))
        at++;
    return re_at(s, at) == ':' || re_at(s, at) == ')' ? NULL : look_around;
}

/* Behind a class that begins at `at`. */
static size_t skip_class(struct str s, size_t at)
{
    at += re_at(s, at + 1) == '^' ? 2 : 1;
    if (re_at(s, at) == ']')
        at++;
    for (; at < s.n && s.p[at] != ']'; at++) {
        if (s.p[at] == '\\')
            at++;
        else if (s.p[at] == '[' && re_at(s, at + 1) == ':')
            while (at < s.n && s.p[at] != ']')
                at++;
    }
    return at < s.n ? at + 1 : s.n;
}

/* Behind "\Q...\E", whose text is literal. */
static size_t skip_quoted(struct str s, size_t at)
{
    while (at < s.n && !(s.p[at] == '\\' && re_at(s, at + 1) == 'E'))
        at++;
    return at < s.n ? at + 2 : s.n;
}

const char *re2_refuses(struct str s)
{
    const char *refused = NULL;
    bool repeats = false, quantified = false; /* in {2,3}; behind a quantifier */

    for (size_t at = 0; at < s.n && !refused;) {
        char c = s.p[at];

        if (c == '+' && quantified)
            refused = "possessive quantifiers";
        else if (c == '\\')
            refused = refuses_escape(s, at + 1);
        else if (c == '(' && re_at(s, at + 1) == '?')
            refused = refuses_group(s, at + 2);
        else if (c == '(' && re_at(s, at + 1) == '*')
            refused = "verbs such as (*ACCEPT)";
        quantified = c == '*' || c == '+' || c == '?' || (c == '}' && repeats);
        repeats = c == '{' ? is_digit_at(s, at + 1) : repeats && c != '}';
        if (c == '[')
            at = skip_class(s, at);
        else if (c == '\\' && re_at(s, at + 1) == 'Q')
            at = skip_quoted(s, at + 2);
        else
            at += c == '\\' ? 2 : 1;
    }
    return refused;
}
