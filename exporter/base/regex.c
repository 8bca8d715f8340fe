/* PCRE2 with limits for steps and memory, so that no pattern of a configuration holds the loop. A compiled
 * one is immutable: any thread. */
#include "exporter/base/regex.h"

#include "exporter/base/alloc.h"

#include <errno.h>
#include <stdio.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* About a millisecond and 8 MiB, which only an expression with catastrophic backtracking needs. */
enum { MATCH_LIMIT = 100000, DEPTH_LIMIT = 20000, HEAP_LIMIT_KIB = 8192, MAX_NESTING = 50 };

/* As in Prometheus: the whole value must match, `.` matches a line feed, and `$` only the end. */
static const uint32_t options = PCRE2_UTF | PCRE2_ANCHORED | PCRE2_ENDANCHORED | PCRE2_DOTALL |
                                PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C;

struct regex {
    pcre2_code *code;
    uint32_t groups;
};

struct regex_matcher {
    pcre2_match_context *context;
    pcre2_match_data *data;
    const struct regex *regex; /* of the last match */
    struct str subject;
};

int regex_new(struct regex **ret, struct str expression, char why[REGEX_WHY_BYTES])
{
    struct regex *x = xcalloc(1, sizeof(*x));
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    char text[128];
    size_t offset;
    int error;

    if (!context)
        memory_exhausted(sizeof(*x));
    (void)pcre2_set_max_pattern_length(context, REGEX_MAX_BYTES);
    (void)pcre2_set_parens_nest_limit(context, MAX_NESTING);
    x->code = pcre2_compile((PCRE2_SPTR)expression.p, expression.n, options, &error, &offset, context);
    pcre2_compile_context_free(context);
    if (!x->code) {
        (void)pcre2_get_error_message(error, (PCRE2_UCHAR *)text, sizeof(text));
        (void)snprintf(why, REGEX_WHY_BYTES, "%s at offset %zu", text, offset);
    } else if (pcre2_pattern_info(x->code, PCRE2_INFO_CAPTURECOUNT, &x->groups) != 0 ||
               x->groups > REGEX_MAX_GROUPS) {
        (void)snprintf(why, REGEX_WHY_BYTES, "more than %d groups", REGEX_MAX_GROUPS);
    } else {
        *ret = x;
        return 0;
    }
    (void)regex_free(x);
    return -EINVAL;
}

struct regex *regex_free(struct regex *x)
{
    if (!x)
        return NULL;
    pcre2_code_free(x->code);
    free(x);
    return NULL;
}

struct regex_matcher *regex_matcher_new(void)
{
    struct regex_matcher *m = xcalloc(1, sizeof(*m));

    m->context = pcre2_match_context_create(NULL);
    m->data = pcre2_match_data_create(REGEX_MAX_GROUPS + 1, NULL);
    if (!m->context || !m->data)
        memory_exhausted(sizeof(*m));
    (void)pcre2_set_match_limit(m->context, MATCH_LIMIT);
    (void)pcre2_set_depth_limit(m->context, DEPTH_LIMIT);
    (void)pcre2_set_heap_limit(m->context, HEAP_LIMIT_KIB);
    return m;
}

struct regex_matcher *regex_matcher_free(struct regex_matcher *m)
{
    if (!m)
        return NULL;
    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->context);
    free(m);
    return NULL;
}

int regex_match(struct regex_matcher *m, const struct regex *x, struct str subject)
{
    int r;

    m->regex = x;
    m->subject = subject.n ? subject : STR("");
    r = pcre2_match(x->code, (PCRE2_SPTR)m->subject.p, m->subject.n, 0, 0, m->data, m->context);
    if (r == PCRE2_ERROR_NOMATCH)
        return 0;
    if (r == PCRE2_ERROR_NOMEMORY)
        return -ENOMEM;
    if (r <= PCRE2_ERROR_UTF8_ERR1 && r >= PCRE2_ERROR_UTF8_ERR21)
        return -EINVAL;
    return r > 0 ? 1 : -ELOOP;
}

/* The number of a group, or SIZE_MAX. Like Go's regexp package, a number has no leading zero. */
static size_t group_number(const struct regex_matcher *m, struct str name)
{
    char text[33]; /* PCRE2's names have at most 32 characters */
    uint64_t n;
    int number;

    if (str_to_u64(name, &n))
        return *name.p == '0' && name.n > 1 ? SIZE_MAX : n;
    if (name.n >= sizeof(text))
        return SIZE_MAX;
    *(char *)mempcpy(text, cstr(name.p), name.n) = '\0';
    number = pcre2_substring_number_from_name(m->regex->code, (PCRE2_SPTR)text);
    return number > 0 ? (size_t)number : SIZE_MAX;
}

struct str regex_group(const struct regex_matcher *m, struct str name)
{
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(m->data);
    size_t i = group_number(m, name);

    if (i > m->regex->groups || ends[2 * i] == PCRE2_UNSET)
        return STR("");
    return (struct str){m->subject.p + ends[2 * i], ends[2 * i + 1] - ends[2 * i]};
}

int regex_change_case(struct str text, bool upper, struct buf *into)
{
    size_t n = 2 * text.n + 1, offset;
    int error, r;
    char *room;
    pcre2_code *all = pcre2_compile((PCRE2_SPTR) "(?s).+", PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP,
                                    &error, &offset, NULL);

    if (!all)
        memory_exhausted(n);
    r = buf_reserve(into, n, &room);
    if (r == 0 && pcre2_substitute(all, (PCRE2_SPTR)text.p, text.n, 0, PCRE2_SUBSTITUTE_EXTENDED, NULL, NULL,
                                   (PCRE2_SPTR)(upper ? "\\U$0" : "\\L$0"), 4, (PCRE2_UCHAR *)room, &n) < 0)
        r = -EINVAL;
    if (r == 0)
        into->n += n;
    pcre2_code_free(all);
    return r;
}
