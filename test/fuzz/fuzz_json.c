/* json_skip() and the pull calls must agree on any bytes; strings must come out well formed and go back in unchanged. */
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
    struct json j;
    BUF_AUTO(b, 64u << 20);

    require(text != NULL);
    n = json_unescape(raw, text);
    require(n <= 3 * raw.n && utf8_valid_prefix((struct str){text, n}) == n);
    require(json_put_string(&b, (struct str){text, n}) == 0);
    json_init(&j, buf_str(&b), JSON_STRICT);
    require(json_string(&j, &back) && json_end(&j));
    again = malloc(3 * back.n + 1);
    require(again && json_unescape(back, again) == n && memcmp(again, text, n) == 0);
    free(again);
    free(text);
}

static void pull(struct json *j)
{
    struct str s;

    switch (json_peek(j)) {
    case JSON_OBJECT:
        for (json_object(j); json_member(j, &s); pull(j))
            check_string(s);
        break;
    case JSON_ARRAY:
        for (json_array(j); json_item(j);)
            pull(j);
        break;
    case JSON_STRING:
        if (json_string(j, &s))
            check_string(s);
        break;
    case JSON_NUMBER:
    case JSON_NONFINITE:
        json_number(j, NULL);
        break;
    default:
        json_skip(j, NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct json skipped, pulled;
    bool good;

    check_string(text);
    for (unsigned flags = 0; flags < 4; flags++) {
        json_init(&skipped, text, flags);
        good = json_skip(&skipped, NULL) && json_end(&skipped);
        json_init(&pulled, text, flags);
        pull(&pulled);
        require(json_end(&pulled) == good && good == !skipped.error && good == !pulled.error);
        require(good || strcmp(pulled.error, skipped.error) == 0);
        require(pulled.error_at == skipped.error_at && pulled.error_at <= size);
        if (good && !(flags & JSON_LENIENT_UTF8))
            require(utf8_valid_prefix(text) == size);
    }
    return 0;
}
