/* The /metrics page: a sink.
 *
 * The page is a row of pieces, each rendered and compressed once, when what it shows changes: the head of the
 * dynamic_score family, one block of lines for each scorer, the program's own metrics. A scrape takes a reference to the row and
 * strings the pieces together; only the few lines about the process itself are made anew. Nothing is done per series.
 *
 * The loop builds a new row beside the old one and swaps a pointer; the HTTP server's thread takes references to it. The
 * one lock is held for that, and for the server's own metrics. */
#ifndef DS_METRIC_PAGE_H
#define DS_METRIC_PAGE_H

#include "exporter/base/httpd.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/sink.h"

struct page;

/* -ENOMEM. */
MUST_USE int page_new(struct page **ret);
/* The same for a program that has only its own metrics to show: nothing of the dynamic_score family. It is no sink. */
MUST_USE int page_new_without_scores(struct page **ret);
struct page *page_free(struct page *p);
DEFINE_CLEANUP(struct page, page_free)

/* As a sink, for the loop. */
struct sink *page_sink(struct page *p);
/* Renders the program's own metrics into the page. -ENOMEM: the old ones stay. Loop thread. */
MUST_USE int page_set_own(struct page *p, const struct metrics *own);
/* Bytes held for the page's pieces. Loop thread. */
size_t page_memory(const struct page *p);

/* GET /metrics (an httpd_fn, direct). */
void page_serve(void *page, const struct httpd_request *rq, struct httpd_reply *reply);
/* Counts an answer of the server (for httpd_options.served). */
void page_count_request(void *page, const char *route, unsigned status, uint64_t bytes);

/* Appends the whole page, not compressed, for the terminal. -ENOMEM, -EFBIG. */
MUST_USE int page_print(struct page *p, struct buf *into);

/* Appends the exposition lines of a batch: `name value\n` each. -ENOMEM, -EFBIG. */
MUST_USE int batch_render(const struct batch *b, struct buf *into);

#endif
