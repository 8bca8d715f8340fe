/* Finds the strings by their member's name in compact JSON. Owns nothing: a cut, with the last string that
 * it saw, belongs to the one watch or call that it is for. On the loop. */
#include "controller/kube/cut.h"

#include "exporter/base/alloc.h"
#include "exporter/base/escape.h"
#include "exporter/base/json.h"

#include <inttypes.h>
#include <stdio.h>

enum { CUT_WORD_BYTES = 20 };

/* raw: followed by its closing quote. */
static int cut_learn(struct kube_cut *cut, struct str raw)
{
    CLEANUP(cleanup_free) char *plain = xmalloc(raw.n * 3);
    struct str text = {plain, jr_unescape(raw, plain)};

    cut->last_hash = cut->hash(text);
    if (cut->learn)
        cut->learn(cut->arg, cut->last_hash, text);
    buf_clear(&cut->last);
    cut->last.max = SIZE_MAX;
    buf_put(&cut->last, raw.p, raw.n + 1);
    return buf_failed(&cut->last);
}

int kube_cut(struct kube_cut *cut, struct str text, struct buf *into)
{
    CLEANUP(cleanup_free) char *pattern = xasprintf("\"%s\":\"", cut->name);
    size_t n = strlen(pattern);
    const char *end = text.p + text.n, *at;
    int r = 0;

    /* The pattern matches member names only, since a quote inside a string is escaped. */
    while (r == 0 && text.n && (at = memmem(text.p, text.n, pattern, n))) {
        struct str rest = {at + n, (size_t)(end - at) - n}, raw = {rest.p, cut->last.n - 1};
        bool repeats = cut->last.n && str_starts(rest, buf_str(&cut->last));
        struct jr j;

        jr_init(&j, (struct str){rest.p - 1, rest.n + 1}, JR_STRICT); /* from the opening quote */
        if (!repeats && !jr_string(&j, &raw))
            break; /* the JSON parser reports the error */
        if (!repeats && raw.n > KUBE_CUT_MIN_BYTES)
            r = cut_learn(cut, raw);
        buf_put(into, text.p, (size_t)(raw.p - text.p));
        if (raw.n > KUBE_CUT_MIN_BYTES)
            buf_printf(into, "cut:%016" PRIx64, cut->last_hash);
        else
            buf_put_str(into, raw);
        text = (struct str){raw.p + raw.n, (size_t)(end - raw.p) - raw.n};
        r = r ?: buf_failed(into);
    }
    buf_put_str(into, text);
    return r ?: buf_failed(into);
}

bool kube_cut_read(struct str text, uint64_t *ret)
{
    int end = 0;

    return text.n == CUT_WORD_BYTES && sscanf(text.p, "cut:%16" SCNx64 "%n", ret, &end) == 1 &&
           end == CUT_WORD_BYTES;
}
