/* A kubeconfig's text: what is taken is complete, what is refused is explained in one line. */

#include "controller/kube/config.h"
#include "exporter/base/buf.h"
#include "exporter/base/str.h"

#include <assert.h>
#include <strings.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_bytes(struct buf b)
{
    assert(b.p ? b.n : b.n == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[512];
    struct kube_config *c = kube_config_parse((struct str){(const char *)data, size}, NULL, why);

    assert(c ? !why[0] : why[0] && !strpbrk(why, "\n\r"));
    if (!c)
        return 0;
    assert(strncasecmp(c->server, "http", 4) == 0 && c->server[strlen(c->server) - 1] != '/');
    check_bytes(c->ca);
    check_bytes(c->cert);
    check_bytes(c->key);
    check_bytes(c->token);
    assert(!c->cert.p == !c->key.p && !(c->insecure && c->ca.p));
    for (size_t i = 0; i < c->token.n; i++)
        assert(c->token.p[i] > 0x20 && c->token.p[i] < 0x7f);
    (void)kube_config_unref(c);
    return 0;
}
