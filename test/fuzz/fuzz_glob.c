/* Patterns: a line with the pattern, the rest is the text. Where both are short, the answer is that of the
 * plain definition; and however long they are, there is one soon. */
#include "exporter/base/def.h"
#include "exporter/base/glob.h"

#include <assert.h>
#include <string.h>

enum { SHORT_PATTERN = 10, SHORT_TEXT = 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool defined(const char *pattern, const char *text)
{
    if (*pattern == '*')
        return defined(pattern + 1, text) || (*text && defined(pattern, text + 1));
    if (!*pattern || !*text)
        return *pattern == *text;
    if (*pattern != '?' && *pattern != *text)
        return false;
    text++;
    while (*pattern == '?' && ((unsigned char)*text & 0xc0) == 0x80)
        text++;
    return defined(pattern + 1, text);
}

static char *copy(const char *p, size_t n)
{
    char *s = strndup(p, n);

    assert(s);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data, *end = size ? memchr(p, '\n', size) : NULL;
    CLEANUP(cleanup_free) char *pattern = NULL;
    CLEANUP(cleanup_free) char *text = NULL;
    bool match;

    if (!end)
        return 0;
    pattern = copy(p, (size_t)(end - p));
    text = copy(end + 1, size - (size_t)(end - p) - 1);
    match = glob_match(pattern, text);
    if (strlen(pattern) <= SHORT_PATTERN && strlen(text) <= SHORT_TEXT)
        assert(match == defined(pattern, text));
    assert(glob_match("*", text) && glob_match("*", pattern));
    if (!strpbrk(pattern, "*?"))
        assert(match == (strcmp(pattern, text) == 0));
    return 0;
}
