/* The /metrics page: a sink. It is a row of pieces: the head of the dynamic_score family, one block of
 * lines per scorer, the program's own metrics. Each is rendered, or rendered and compressed, when the first
 * scrape asks for that. Later ones string them together; nothing is done per series. */
#pragma once

#include "exporter/http/httpd.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/series.h"

struct page;

/* Without scores: a page for a program that only has metrics of its own. It is not a sink. */
struct page *page_new(bool has_scores);
struct page *page_free(struct page *p);
DEFINE_CLEANUP(struct page, page_free)

/* The page as a sink. Loop thread. */
struct sink *page_sink(struct page *p);
/* Shows the program's own metrics together with all that the sink was given since, so that a scrape never
 * counts a round without its scores, or the reverse. -EFBIG: with the old metrics. Loop thread. */
MUST_USE int page_set_own(struct page *p, const struct metrics *own);
/* The size of the program's own metrics as text. Loop thread. */
size_t page_own_bytes(const struct page *p);
/* Bytes kept for the page, the series of its blocks included. Loop thread. */
size_t page_memory(const struct page *p);

/* GET /metrics (an httpd_fn, direct). */
void page_serve(void *page, const struct httpd_request *rq, struct httpd_reply *reply);
/* For httpd_options.served, .cut and .held. */
void page_count_request(void *page, const char *route, unsigned status, uint64_t bytes);
void page_count_cut(void *page, unsigned n);
uint64_t page_held(void *page, uint64_t *ret_version, uint64_t *ret_bytes);

/* Appends the whole page as plain text, for the terminal. -EFBIG. */
MUST_USE int page_print(struct page *p, struct buf *into);
/* Appends the exposition lines of a batch: `name value\n` each. -EFBIG. */
MUST_USE int batch_render(const struct batch *b, struct buf *into);

/* Appends `text`, of up to 2 GiB, as deflate blocks (RFC 1951): none is the last, and they end on a byte
 * border. -EFBIG. Any thread. */
MUST_USE int deflate_piece(struct buf *into, struct str text);

/* ---- Which exposition format, and whether compressed: by the q-values of RFC 9110, 12.4 ---- */

enum expo_format { EXPO_TEXT, EXPO_OPENMETRICS_001, EXPO_OPENMETRICS_1, EXPO_FORMATS };

/* The format for an Accept header; "" is no header. Text 0.0.4 where nothing that is offered is asked for. */
enum expo_format negotiate_format(const char *accept);
/* Whether an Accept-Encoding header takes gzip, and no less than what is not compressed. */
bool negotiate_gzip(const char *accept_encoding);
/* The Content-Type of each format. */
extern const char *const expo_content_types[EXPO_FORMATS];
