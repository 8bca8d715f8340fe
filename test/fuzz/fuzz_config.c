/* The agent's configuration, YAML or JSON: what is accepted is whole, what is refused is explained. */
#include "exporter/agent/config.h"
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/score/summary.h"

#include <assert.h>
#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A cluster's name does not end the string literals that it is put into. */
static void check_query(const char *queries)
{
    size_t from = 0;

    for (struct str q; q = summary_next_query(str_of(queries), &from), q.n;) {
        BUF_AUTO(text, 64u << 20);
        size_t at = 0;

        if (summary_put_query(&text, q, STR("a\"b'c\\d\n;#")) == 0)
            assert(str_eq(summary_next_query(buf_str(&text), &at), buf_str(&text)));
    }
}

static void check_sources(const struct summary *s)
{
    assert(s->n_sources <= SUMMARY_MAX_SOURCES);
    for (size_t i = 0; i < s->n_sources; i++) {
        struct summary_source from = s->sources[i];
        size_t at = 0;

        assert(from.range_s >= 1 && from.step_s >= 1 && summary_next_query(str_of(from.query), &at).n > 0);
        check_query(from.query);
        assert(strncasecmp(from.endpoint, "http", 4) == 0 && (from.auth.name || !from.auth.key));
        assert(!from.auth.name || (!strchr(from.auth.name, '/') && from.auth.name[0] != '.'));
    }
}

/* A copy is the same. */
static void check_copy(const struct summary *s)
{
    struct summary copy = summary_copy(s);

    assert(summary_same(&copy, s) && summary_same(s, &copy));
    check_sources(&copy);
    summary_done(&copy);
}

static void check_good(const struct config *c)
{
    assert(c->n_listen >= 1 && c->n_listen <= CONFIG_MAX_LISTEN && !c->listen[c->n_listen]);
    for (size_t i = 0; i < c->summaries.n; i++) {
        const struct summary *s = &c->summaries.list[i];

        assert(*s->score_name && *s->name && s->line && s->column);
        assert(s->n_items >= 1 && s->n_items <= SUMMARY_MAX_ITEMS);
        for (size_t k = 0; k < s->n_items; k++)
            assert(*s->items[k].format && (k == 0 || strcmp(s->items[k].format, s->items[0].format) != 0));
        assert(s->interval_ms >= 1000 && s->timeout_ms >= 0);
        assert(strncasecmp(s->scoring_endpoint, "http", 4) == 0);
        assert(s->scoring_auth.name || !s->scoring_auth.key);
        assert(!s->scoring_auth.name ||
               (!strchr(s->scoring_auth.name, '/') && s->scoring_auth.name[0] != '.'));
        check_sources(s);
        check_copy(s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BUF_AUTO(said, 64u << 20);
    struct config *c = NULL;
    struct problems p;
    int r;

    problems_init(&p, "fuzz");
    r = config_parse(&c, (struct str){(const char *)data, size}, NULL, &p);
    assert(r == 0 ? c && !p.errors : !c && r == -EINVAL && p.errors);
    if (c)
        check_good(c);
    problems_print(&p, &said);
    assert(buf_failed(&said) == 0);
    for (size_t i = 0; i < p.n; i++)
        assert(p.list[i].line && p.list[i].column && !strchr(p.list[i].text, '\n'));
    (void)config_free(c);
    problems_done(&p);
    return 0;
}
