/* The web configuration file: what is accepted is whole, what is refused is explained. */
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/http/tls.h"
#include "exporter/web/web_file.h"

#include <assert.h>
#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_pem(const struct httpd_tls_pem *pem, bool needed)
{
    assert(!(pem->file && pem->text) && (!needed || pem->file || pem->text));
    assert(!pem->file || pem->file[0] == '/');
}

static void check_list(const struct httpd_tls_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        assert(l->items[i][0]);
}

static void check_good(const struct web_file *f)
{
    assert(f->n_headers <= WEB_FILE_HEADERS && f->n_users <= WEB_FILE_MAX_USERS);
    assert(f->interval_ms >= 0 && f->burst >= 0);
    check_pem(&f->tls.cert, f->has_tls);
    check_pem(&f->tls.key, f->has_tls);
    check_pem(&f->tls.client_ca, false);
    check_list(&f->tls.cipher_suites);
    check_list(&f->tls.curve_preferences);
    check_list(&f->tls.client_allowed_sans);
    for (size_t i = 0; i < f->n_users; i++) {
        unsigned cost = bcrypt_cost(f->users[i]->text);
        struct str name = f->users[i]->key;
        assert(cost >= 4 && cost <= BCRYPT_MAX_COST && (!name.n || !memchr(name.p, ':', name.n)));
    }
    for (size_t i = 0; i < f->n_headers; i++)
        assert(f->headers[i].value[0] && !strpbrk(f->headers[i].value, "\r\n"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(cleanup_web_file_free) struct web_file *f = NULL;
    CLEANUP(problems_done) struct problems p = {0};
    BUF_AUTO(text, 64u << 20);
    int r;

    problems_init(&p, "web.yml");
    r = web_file_parse(&f, (struct str){(const char *)data, size}, "/etc/web", &p);
    assert((r == 0 && f && !p.errors) || (r == -EINVAL && !f && p.errors));
    if (f)
        check_good(f);
    problems_print(&p, &text);
    assert(buf_failed(&text) == 0);
    return 0;
}
