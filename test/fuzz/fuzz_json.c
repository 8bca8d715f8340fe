/* jr_skip() and the pull calls must agree on any bytes; strings must come out well formed and go back in
 * unchanged. */
#include "exporter/base/buf.h"
#include "exporter/base/escape.h"
#include "exporter/base/json.h"
#include "exporter/base/utf8.h"

static void require(bool good)
{
    if (!good)
        abort();
}

static void check_string(struct str raw)
{
    char *text = malloc(3 * raw.n + 1), *again;
    size_t n;
    struct str back;
    struct jr j;
    BUF_AUTO(b, 64u << 20);

    require(text != NULL);
    n = jr_unescape(raw, text);
    require(n <= 3 * raw.n && utf8_valid_prefix((struct str){text, n}) == n);
    buf_put_json(&b, (struct str){text, n});
    require(buf_failed(&b) == 0);
    jr_init(&j, buf_str(&b), JR_STRICT);
    require(jr_string(&j, &back) && jr_end(&j));
    again = malloc(3 * back.n + 1);
    require(again && jr_unescape(back, again) == n && memcmp(again, text, n) == 0);
    free(again);
    free(text);
}

static void pull(struct jr *j)
{
    struct str s;

    switch (jr_peek(j)) {
    case JR_OBJECT:
        for (jr_object(j); jr_member(j, &s); pull(j))
            check_string(s);
        break;
    case JR_ARRAY:
        for (jr_array(j); jr_item(j);)
            pull(j);
        break;
    case JR_STRING:
        if (jr_string(j, &s))
            check_string(s);
        break;
    case JR_NUMBER:
    case JR_NONFINITE:
        jr_number(j, NULL);
        break;
    default:
        jr_skip(j, NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct jr skipped, pulled;
    bool good;

    check_string(text);
    for (unsigned flags = 0; flags < 4; flags++) {
        jr_init(&skipped, text, flags);
        good = jr_skip(&skipped, NULL) && jr_end(&skipped);
        jr_init(&pulled, text, flags);
        pull(&pulled);
        require(jr_end(&pulled) == good && good == !skipped.error && good == !pulled.error);
        require(good || strcmp(pulled.error, skipped.error) == 0);
        require(pulled.error_at == skipped.error_at && pulled.error_at <= size);
        if (good && !(flags & JR_LENIENT_UTF8))
            require(utf8_valid_prefix(text) == size);
    }
    return 0;
}
