/* The agent's configuration, YAML or JSON: what is accepted is whole, what is refused is explained. */
#include "exporter/agent/config.h"

#include <assert.h>
#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_good(const struct config *c)
{
    assert(c->n_listen >= 1 && c->n_listen <= CONFIG_MAX_LISTEN && !c->listen[c->n_listen]);
    for (size_t i = 0; i < c->summaries.n; i++) {
        const struct summary *s = &c->summaries.list[i];
        size_t at = 0;

        assert(*s->score_name && *s->name && *s->dimension_format && s->line && s->column);
        assert(s->interval_ms >= 1000 && s->timeout_ms >= 0);
        assert(strncasecmp(s->scoring_endpoint, "http", 4) == 0);
        assert(!s->source_auth.name == !s->source_auth.key && !s->scoring_auth.name == !s->scoring_auth.key);
        assert(!s->scoring_auth.name ||
               (!strchr(s->scoring_auth.name, '/') && s->scoring_auth.name[0] != '.'));
        if (s->source_type == SOURCE_PROMETHEUS)
            assert(s->source_range_s >= 1 && s->source_step_s >= 1 &&
                   summary_next_query(str_of(s->source_query), &at).n > 0 && s->source_endpoint);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BUF_AUTO(said, 64u << 20);
    struct config *c = NULL;
    struct problems p;
    int r;

    if (problems_init(&p, "fuzz") < 0)
        return 0;
    r = config_parse(&c, (struct str){(const char *)data, size}, NULL, 0, &p);
    assert(r == 0 ? c && !p.errors : !c && r == -EINVAL && p.errors);
    if (c)
        check_good(c);
    assert(problems_print(&p, &said) == 0);
    for (size_t i = 0; i < p.n; i++)
        assert(p.list[i].line && p.list[i].column && !strchr(p.list[i].text, '\n'));
    (void)config_free(c);
    problems_done(&p);
    return 0;
}
