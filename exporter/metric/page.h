/* The /metrics page. It is a row of blocks (block.h): the head of the dynamic_score family, one
 * block of lines for each scorer, the program's own metrics. A scrape strings them together; nothing is done
 * per series unless it is the first one to ask for a block after a round. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/http/httpd.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/metrics.h"

struct page;

/* Without scores: a page for a program that only has metrics of its own. */
struct page *page_new(bool has_scores);
struct page *page_free(struct page *p);
DEFINE_CLEANUP(struct page, page_free)

/* A scorer's whole new set of scores, which replaces its last. Without room for it, an error is logged and
 * the last one stays. Loop thread. */
void page_publish(struct page *p, struct batch *b);
/* The scorer's scores, if there are any, are gone. Loop thread. */
void page_withdraw(struct page *p, const char *score_name);
/* Shows the program's own metrics together with all that was published and withdrawn since, so that a scrape
 * never counts a round without its scores, or the reverse. -EFBIG: with the old metrics. Loop thread. */
MUST_USE int page_set_own(struct page *p, const struct metrics *own);
/* The size of the program's own metrics as text. Loop thread. */
size_t page_own_bytes(const struct page *p);
/* Bytes kept for the page, the series of its blocks included. Loop thread, or any with the page's lock. */
size_t page_memory(const struct page *p);

/* GET /metrics (an httpd_fn, direct). */
void page_serve(void *page, const struct httpd_request *rq, struct httpd_reply *reply);
/* For httpd_options.served, .cut and .old_bytes. */
void page_count_request(void *page, const char *route, unsigned status, uint64_t bytes);
void page_count_cut(void *page, unsigned n);
uint64_t page_old_bytes(void *page, uint64_t *ret_version, uint64_t *ret_bytes);

/* Appends the whole page as plain text, for the terminal. -EFBIG. */
MUST_USE int page_print(struct page *p, struct buf *into);
