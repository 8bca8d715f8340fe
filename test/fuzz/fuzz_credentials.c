/* Any value under each key that counts: what is accepted can go into a request as it is. The first byte
 * chooses the key. */
#include "exporter/base/buf.h"
#include "exporter/base/http.h"
#include "exporter/score/credentials.h"

#include <assert.h>
#include <errno.h>

struct box {
    struct secrets secrets;
    const char *key, *partner; /* partner: of a username or a password */
    struct str value;
};

static int box_read(struct secrets *s, const char *name, const char *key, struct buf *into,
                    const char **ret_why)
{
    const struct box *b = CONTAINER_OF(s, const struct box, secrets);

    (void)name;
    (void)ret_why;
    if (b->partner && strcmp(key, b->partner) == 0)
        return buf_puts(into, "partner");
    return strcmp(key, b->key) == 0 ? buf_put_str(into, b->value) : -ENOENT;
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
    assert(rq.bearer.n <= n && rq.tls->ca.n <= n && !rq.tls->cert.n == !rq.tls->key.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char *const keys[] = {"token",    "ca.crt",   "tls.crt", "tls.key",
                                       "username", "password", "header"};
    struct box b = {.secrets.read = box_read};
    struct credentials *c = NULL;
    char why[256];

    if (n == 0)
        return 0;
    b.key = keys[data[0] % ARRAY_SIZE(keys)];
    b.partner = strcmp(b.key, "username") == 0   ? "password"
                : strcmp(b.key, "password") == 0 ? "username"
                                                 : NULL;
    b.value = (struct str){(const char *)data + 1, n - 1};
    if (credentials_read(&c, &b.secrets, "box", data[0] % ARRAY_SIZE(keys) ? NULL : "token", why) == 0)
        check_good(c, n);
    else
        assert(*why && !c);
    (void)credentials_free(c);
    return 0;
}
