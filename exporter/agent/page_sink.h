/* The /metrics page as a sink. Loop thread. */
#pragma once

#include "exporter/metric/page.h"
#include "exporter/score/sink.h"

struct page_sink {
    struct sink sink;
    struct page *page;
};

/* The page must outlive it. */
void page_sink_init(struct page_sink *s, struct page *page);
