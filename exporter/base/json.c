/* The pull interface: each call reads one token or one whole value. */
#include "exporter/base/json.h"

#include "exporter/base/json_scan.h"

void jr_init(struct jr *j, struct str text, unsigned flags)
{
    static const char none[1];

    *j = (struct jr){.flags = flags};
    j->begin = text.n ? text.p : none;
    j->p = j->block = j->begin;
    j->end = j->begin + text.n;
    if (text.n >= SCAN_BLOCK)
        j->stops = scan_block(j->begin);
}

bool jr_fail(struct jr *j, const char *why)
{
    if (!j->error) {
        j->error = why;
        j->error_at = (size_t)(j->p - j->begin);
    }
    return false;
}

enum jr_type jr_peek(struct jr *j)
{
    bool words = j->flags & JR_NAN_WORDS;

    if (j->error)
        return JR_NONE;
    j->p = scan_space(j, j->p);
    switch (scan_at(j, j->p)) {
    case '{':
        return JR_OBJECT;
    case '[':
        return JR_ARRAY;
    case '"':
        return JR_STRING;
    case 't':
        return JR_TRUE;
    case 'f':
        return JR_FALSE;
    case 'n':
        return JR_NULL;
    case '-':
        return words && scan_at(j, j->p + 1) == 'I' ? JR_NONFINITE : JR_NUMBER;
    case '0' ... '9':
        return JR_NUMBER;
    case 'N':
    case 'I':
        if (words)
            return JR_NONFINITE;
        break;
    default:
        break;
    }
    jr_scan_fail(j, j->p, "expected a value");
    return JR_NONE;
}

static inline bool jr_enter(struct jr *j, char bracket, const char *expected)
{
    const char *p;

    if (UNLIKELY(j->error != NULL))
        return false;
    p = scan_space(j, j->p);
    p = LIKELY(scan_at(j, p) == bracket) ? scan_enter(j, p) : jr_scan_fail(j, p, expected);
    if (UNLIKELY(!p))
        return false;
    j->p = p;
    j->first = true;
    return true;
}

bool jr_object(struct jr *j)
{
    return jr_enter(j, '{', "expected an object");
}

bool jr_array(struct jr *j)
{
    return jr_enter(j, '[', "expected an array");
}

/* Moves to the next member or item; NULL on error and after the closing bracket, which is consumed. */
static inline const char *jr_next(struct jr *j, char bracket, const char *expected)
{
    const char *p;

    if (UNLIKELY(j->error != NULL))
        return NULL;
    p = scan_space(j, j->p);
    if (scan_at(j, p) == bracket) {
        j->p = p + 1;
        j->depth--;
        j->first = false;
        return NULL;
    }
    if (j->first) {
        j->first = false;
        return p;
    }
    if (UNLIKELY(scan_at(j, p) != ','))
        return jr_scan_fail(j, p, expected);
    return scan_space(j, p + 1);
}

bool jr_member(struct jr *j, struct str *ret_key)
{
    const char *p = jr_next(j, '}', "expected ',' or '}'");

    if (p)
        p = scan_name(j, p, ret_key);
    if (!p)
        return false;
    j->p = p;
    return true;
}

bool jr_item(struct jr *j)
{
    const char *p = jr_next(j, ']', "expected ',' or ']'");

    if (!p)
        return false;
    j->p = p;
    return true;
}

bool jr_string(struct jr *j, struct str *ret)
{
    const char *p, *close;

    if (UNLIKELY(j->error != NULL))
        return false;
    p = scan_space(j, j->p);
    close = LIKELY(scan_at(j, p) == '"') ? scan_string(j, p + 1) : jr_scan_fail(j, p, "expected a string");
    if (UNLIKELY(!close))
        return false;
    if (ret)
        *ret = (struct str){p + 1, (size_t)(close - p - 1)};
    j->p = close + 1;
    return true;
}

bool jr_number(struct jr *j, struct str *ret)
{
    const char *p, *end;
    char c;

    if (UNLIKELY(j->error != NULL))
        return false;
    p = scan_space(j, j->p);
    c = scan_at(j, p);
    if (LIKELY((unsigned char)(c - '0') < 10 || c == '-'))
        end = jr_scan_number(j, p);
    else if ((c == 'N' || c == 'I') && (j->flags & JR_NAN_WORDS))
        end = jr_scan_word(j, p);
    else
        end = jr_scan_fail(j, p, "expected a number");
    if (UNLIKELY(!end))
        return false;
    if (ret)
        *ret = (struct str){p, (size_t)(end - p)};
    j->p = end;
    return true;
}

bool jr_end(struct jr *j)
{
    if (j->error)
        return false;
    j->p = scan_space(j, j->p);
    if (j->p == j->end && j->depth == 0)
        return true;
    jr_scan_fail(j, j->p, "unexpected data after the value");
    return false;
}
