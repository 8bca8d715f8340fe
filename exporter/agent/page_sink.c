/* Passes scores from the agent to the page, which knows neither rounds nor scorers. Owns nothing. */
#include "exporter/agent/page_sink.h"

#include "exporter/base/clock.h"
#include "exporter/base/def.h"

static void page_on_round(struct sink *sink, const char *score_name, const struct round_outcome *o)
{
    struct page_sink *s = CONTAINER_OF(sink, struct page_sink, sink);

    (void)score_name;
    if (o->batch)
        page_publish(s->page, o->batch);
}

static void page_on_withdrawn(struct sink *sink, const char *score_name, unix_ms at)
{
    struct page_sink *s = CONTAINER_OF(sink, struct page_sink, sink);

    (void)at; /* Prometheus sees that a series is gone by its absence */
    page_withdraw(s->page, score_name);
}

static const struct sink_ops page_sink_ops = {.round_ended = page_on_round, .withdrawn = page_on_withdrawn};

void page_sink_init(struct page_sink *s, struct page *page)
{
    s->sink.ops = &page_sink_ops;
    s->page = page;
}
