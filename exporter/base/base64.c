/* GnuTLS does it; here are its inputs' checks, and the wiping of what it leaves behind, which may be a
 * secret. */
#include "exporter/base/base64.h"

#include "exporter/base/alloc.h"

#include <errno.h>
#include <gnutls/gnutls.h>

int base64_decode(struct str text, struct buf *into)
{
    const gnutls_datum_t from = {(unsigned char *)(uintptr_t)text.p, (unsigned)text.n};
    gnutls_datum_t to = {0};

    if (!text.n)
        return 0;
    /* GnuTLS stops at a hyphen. */
    if (text.n > UINT32_MAX || !str_has_only(text, "+/=\r\n") || gnutls_base64_decode2(&from, &to) < 0)
        return -EINVAL;
    buf_put(into, to.data, to.size);
    gnutls_memset(to.data, 0, to.size); /* it may be a secret */
    gnutls_free(to.data);
    return buf_failed(into);
}

size_t base64_encode(struct str bytes, char *out)
{
    const gnutls_datum_t from = {(unsigned char *)(uintptr_t)bytes.p, (unsigned)bytes.n};
    gnutls_datum_t to = {0};
    size_t n;

    if (!bytes.n)
        return 0;
    if (gnutls_base64_encode2(&from, &to) < 0)
        memory_exhausted(bytes.n);
    n = to.size;
    memcpy(out, to.data, n);
    gnutls_free(to.data);
    return n;
}
