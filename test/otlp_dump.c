/* Reads OTLP requests from files, in JSON if *.json* and else in protobuf, compressed if *.gz, and prints the
 * series that the agent would keep: a JSON object {"metric":{...},"values":[[ms,"value"],...]} for each line.
 * Prints each response to stderr.
 *
 *     otlp-dump [--k8s-labels] [--promote=NAMES] FILE... */
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/file.h"
#include "exporter/base/inflate.h"
#include "exporter/base/json.h"
#include "exporter/num/num.h"
#include "exporter/otlp/ingest.h"
#include "exporter/otlp/labels.h"
#include "exporter/otlp/reply.h"
#include "exporter/otlp/schema.h"
#include "exporter/tsdb/tsdb.h"

#include <errno.h>
#include <stdio.h>

enum { MAX_BYTES = 256 << 20, MAX_SERIES = 1000000 };

static int dump_labels(const struct tsdb_view *v, size_t i, struct buf *out)
{
    size_t n;
    const struct tsdb_label *l = tsdb_view_labels(v, i, &n);
    int r = buf_puts(out, "{\"metric\":{");

    for (size_t k = 0; k < n && r == 0; k++) {
        r = k ? buf_putc(out, ',') : 0;
        r = r ?: buf_put_json(out, l[k].name);
        r = r ?: buf_putc(out, ':');
        r = r ?: buf_put_json(out, l[k].value);
    }
    return r ?: buf_puts(out, "},\"values\":[");
}

static int dump_values(const struct tsdb_view *v, size_t i, struct buf *out)
{
    const char *between = "";
    struct tsdb_iter it;
    char text[NUM_MAX];
    uint64_t bits;
    int64_t t_ms;
    double value;
    int r = 0;

    tsdb_iter_init(&it, v, i);
    while (r == 0 && tsdb_iter_next(&it, &t_ms, &value)) {
        memcpy(&bits, &value, sizeof(bits));
        r = buf_printf(out, "%s[%lld,\"%.*s\"]", between, (long long)t_ms,
                       bits == TSDB_STALE_BITS ? 5 : (int)num_put_double(text, value),
                       bits == TSDB_STALE_BITS ? "stale" : text);
        between = ",";
    }
    return r ?: buf_puts(out, "]}\n");
}

static int dump(struct tsdb *t)
{
    const struct tsdb_matcher all = {.op = TSDB_NE, .name = STR("__name__"), .value = STR("")};
    CLEANUP(cleanup_tsdb_view_free) struct tsdb_view *v = NULL;
    BUF_AUTO(out, MAX_BYTES);
    char why[TSDB_WHY_BYTES];
    int r = tsdb_select(t, &all, 1, 0, INT64_MAX, MAX_BYTES, &v, why);

    for (size_t i = 0; r == 0 && i < tsdb_view_count(v); i++)
        r = dump_labels(v, i, &out) ?: dump_values(v, i, &out);
    if (r == 0 && out.n && fwrite(out.p, 1, out.n, stdout) != out.n)
        r = -EIO;
    return r;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);

    return n >= m && strcmp(s + n - m, end) == 0;
}

/* The request in protobuf. */
static int read_request(const char *path, struct buf *request, char why[SCHEMA_WHY_BYTES])
{
    BUF_AUTO(file, MAX_BYTES);
    BUF_AUTO(plain, MAX_BYTES);
    int r = file_read(path, &file);

    if (r == 0)
        r = ends_with(path, ".gz") ? inflate_body(buf_str(&file), &plain, NULL)
                                   : buf_put_str(&plain, buf_str(&file));
    if (r < 0)
        return r;
    return strstr(path, ".json") ? schema_from_json(buf_str(&plain), request, why)
                                 : buf_put_str(request, buf_str(&plain));
}

static int take(struct ingest *in, const char *path)
{
    char why[SCHEMA_WHY_BYTES] = "";
    struct ingest_outcome outcome;
    BUF_AUTO(request, MAX_BYTES);
    BUF_AUTO(reply, MAX_BYTES);
    int r = read_request(path, &request, why);

    r = r ?: schema_check(buf_str(&request), why);
    r = r ?: ingest_request(in, buf_str(&request), &outcome);
    r = r ?: otlp_put_response(OTLP_JSON, &outcome, &reply);
    if (r == 0)
        (void)fprintf(stderr, "%.*s\n", STR_ARG(buf_str(&reply)));
    else
        (void)fprintf(stderr, "%s: %s %s\n", path, strerror(-r), why);
    return r;
}

int main(int argc, char **argv)
{
    struct ingest_options o = {.clock = &clock_system};
    const struct tsdb_options store = {
        .clock = &clock_system, .max_bytes = MAX_BYTES, .max_series = MAX_SERIES};
    CLEANUP(cleanup_tsdb_free) struct tsdb *t = NULL;
    CLEANUP(cleanup_ingest_free) struct ingest *in = NULL;
    int i = 1, r = tsdb_new(&t, &store);

    for (; i < argc && argv[i][0] == '-'; i++)
        if (strcmp(argv[i], "--k8s-labels") == 0)
            otlp_promote_k8s(&o.promotion);
        else if (strncmp(argv[i], "--promote=", 10) == 0)
            (void)otlp_promote(&o.promotion, str_of(argv[i] + 10));
    o.tsdb = t;
    r = r ?: ingest_new(&in, &o);
    for (; i < argc && r == 0; i++)
        r = take(in, argv[i]);
    return (r ?: dump(t)) < 0;
}
