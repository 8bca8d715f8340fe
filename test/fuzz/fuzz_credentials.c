/* Any value under each key that counts: what is accepted can go into a request as it is. The first byte
 * chooses the key. */
#include "exporter/base/buf.h"
#include "exporter/http/http.h"
#include "exporter/score/credentials.h"

#include <assert.h>
#include <errno.h>

struct box {
    struct secrets secrets;
    const char *key, *partner; /* partner: of a username or a password; "" for those of OAuth 2.0 */
    struct str value;
};

static int box_read(struct secrets *s, const char *name, const char *key, struct buf *into,
                    const char **ret_why)
{
    const struct box *b = CONTAINER_OF(s, const struct box, secrets);

    (void)name;
    (void)ret_why;
    if (b->partner && strcmp(key, b->partner) == 0)
        buf_puts(into, "partner");
    else if (strcmp(key, b->key) == 0)
        buf_put_str(into, b->value);
    else if (b->partner && !*b->partner && strstr("client_id client_secret token_url", key))
        buf_puts(into, "http://partner/");
    else
        return -ENOENT;
    return buf_failed(into);
}

static void check_line(const char *s, bool may_be_empty)
{
    assert(may_be_empty || *s);
    assert(!strpbrk(s, "\r\n"));
}

static void check_good(const struct credentials *c, size_t n)
{
    struct http_request rq = {0};

    credentials_apply(c, &rq);
    if (rq.n_headers) {
        check_line(rq.headers[0], false);
        assert(strchr(rq.headers[0], ':') > rq.headers[0] && strncasecmp(rq.headers[0], "host:", 5) != 0);
    }
    if (rq.user) {
        check_line(rq.user, false);
        check_line(rq.password, true);
        assert(!strchr(rq.user, ':'));
    }
    if (rq.oauth2) {
        check_line(rq.oauth2->token_url, false);
        assert(http_is_url(str_of(rq.oauth2->token_url)) && rq.oauth2->client_id.n &&
               rq.oauth2->client_secret.n);
    }
    assert(rq.bearer.n <= n && rq.tls->ca.n <= n && !rq.tls->cert.n == !rq.tls->key.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const keys[] = {"token",         "ca.crt",    "tls.crt", "tls.key",
                                       "username",      "password",  "header",  "client_id",
                                       "client_secret", "token_url", "scopes",  "audience"};
    struct box b = {.secrets.read = box_read};
    struct credentials *c = NULL;
    char why[CREDENTIALS_WHY_BYTES];

    if (n == 0)
        return 0;
    b.key = keys[data[0] % ARRAY_SIZE(keys)];
    b.partner = strcmp(b.key, "username") == 0   ? "password"
                : strcmp(b.key, "password") == 0 ? "username"
                : data[0] % ARRAY_SIZE(keys) > 6 ? ""
                                                 : NULL;
    b.value = (struct str){(const char *)data + 1, n - 1};
    if (credentials_read(&c, &b.secrets, "box", data[0] % ARRAY_SIZE(keys) ? NULL : "token", why) == 0)
        check_good(c, n);
    else
        assert(*why && !c);
    (void)credentials_free(c);
    return 0;
}
