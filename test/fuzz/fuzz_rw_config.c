/* The remoteWrite section: what is accepted can be used, what is refused is explained. */
#include "exporter/agent/config.h"
#include "exporter/base/doc.h"
#include "remotewrite/config.h"
#include "remotewrite/labels.h"

#include <assert.h>
#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct rw_endpoint_config *c)
{
    static const struct label labels[] = {
        {STR("__name__"), STR("dynamic_score")}, {STR("ds_app"), STR("a\"b")}, {STR("ds_node"), STR("n")}};
    CLEANUP(cleanup_label_maker_free) struct label_maker *m = label_maker_new(c);
    const char *host = strstr(c->url_shown, "://");

    assert(*c->url && *c->name && !strchr(c->name, '/') && c->name[0] != '.');
    assert(host && !memchr(host + 3, '@', strcspn(host + 3, "/")) && !strpbrk(c->url_shown, "?#"));
    assert(c->min_backoff_ms <= c->max_backoff_ms && c->max_backoff_ms <= 60000 && c->timeout_ms > 0);
    assert(c->max_samples_per_send >= 1 && c->max_spool_bytes >= 65536);
    for (size_t i = 0; i < c->n_headers; i++)
        assert(!strpbrk(c->headers[i], "\r\n") &&
               strcspn(c->headers[i], " ") == strcspn(c->headers[i], ":") + 1);
    (void)label_maker_add(m, labels, ARRAY_SIZE(labels), 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config *c = NULL;
    struct problems p;
    int r;

    problems_init(&p, "fuzz");
    r = config_parse(&c, (struct str){(const char *)data, size}, &rw_config_section, &p);
    assert(r == 0 ? c && !p.errors : !c && r == -EINVAL && p.errors);
    for (size_t i = 0; c && c->section && i < ((struct rw_config *)c->section)->n; i++)
        use(((struct rw_config *)c->section)->list[i]);
    for (size_t i = 0; i < p.n; i++)
        assert(!strchr(p.list[i].text, '\n'));
    (void)config_free(c);
    problems_done(&p);
    return 0;
}
