#include "controller/kube/cut.h"

#include "exporter/base/json.h"

#include <errno.h>
#include <inttypes.h>

enum { NAME_BYTES = 64 };

/* The opening quote of the next such member's value, or NULL. The pattern matches member names only, since
 * a quote inside a string is escaped. */
static const char *cut_find_value(struct str pattern, const char *from, const char *end)
{
    const char *at = memmem(from, (size_t)(end - from), pattern.p, pattern.n);

    return at ? at + pattern.n - 1 : NULL;
}

static int cut_put_hash(const struct kube_cut *cut, struct str raw, struct buf *scratch, struct buf *into)
{
    char *plain;
    int r;

    scratch->n = 0;
    r = buf_room(scratch, raw.n * 3, &plain);
    if (r < 0)
        return r;
    return buf_printf(into, "cut:%016" PRIx64, cut->hash((struct str){plain, jr_unescape(raw, plain)}));
}

int kube_cut(const struct kube_cut *cut, struct str text, struct buf *into)
{
    const char *from = text.p, *end = text.p + text.n, *at;
    BUF_AUTO(pattern, NAME_BYTES);
    BUF_AUTO(scratch, SIZE_MAX);
    size_t mark = into->n;
    int r = buf_printf(&pattern, "\"%s\":\"", cut->name);

    while (r == 0 && text.n && (at = cut_find_value(buf_str(&pattern), from, end))) {
        struct str raw;
        struct jr j;

        jr_init(&j, (struct str){at, (size_t)(end - at)}, JR_STRICT);
        if (!jr_string(&j, &raw))
            break; /* the JSON parser reports the error */
        r = buf_put(into, from, (size_t)(raw.p - from));
        if (r == 0)
            r = raw.n > KUBE_CUT_MIN_BYTES ? cut_put_hash(cut, raw, &scratch, into) : buf_put_str(into, raw);
        from = raw.p + raw.n;
    }
    if (r == 0 && from < end)
        r = buf_put(into, from, (size_t)(end - from));
    if (r < 0)
        buf_truncate(into, mark);
    return r;
}

bool kube_cut_read(struct str text, uint64_t *ret)
{
    char digits[KUBE_CUT_WORD_BYTES - 4 + 1] = "";

    if (text.n != KUBE_CUT_WORD_BYTES || memcmp(text.p, "cut:", 4) != 0)
        return false;
    memcpy(digits, text.p + 4, sizeof(digits) - 1);
    if (strspn(digits, "0123456789abcdef") != sizeof(digits) - 1)
        return false;
    *ret = strtoull(digits, NULL, 16);
    return true;
}
