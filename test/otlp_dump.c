/* Reads OTLP requests from files, in JSON if *.json* and else in protobuf, compressed if *.gz, and prints the
 * series that the agent would keep: a JSON object {"metric":{...},"values":[[ms,"value"],...]} for each line.
 * Prints how many points were rejected to stderr.
 *
 *     otlp-dump [--k8s-labels] [--promote=NAMES] FILE... */
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/escape.h"
#include "exporter/base/file.h"
#include "exporter/base/inflate.h"
#include "exporter/num/num.h"
#include "exporter/otlp/decode.h"
#include "exporter/otlp/ingest.h"
#include "exporter/otlp/series.h"

#include <errno.h>
#include <stdio.h>

enum { MAX_BYTES = 256 << 20 };

static void dump_labels(const struct series_reader *in, struct buf *out)
{
    struct str rest = in->labels;
    struct series_label l;

    buf_puts(out, "{\"metric\":{");
    while (labels_next(&rest, &l)) {
        buf_put_json(out, l.name);
        buf_putc(out, ':');
        buf_put_json(out, l.value);
        if (rest.n > 0)
            buf_putc(out, ',');
    }
    buf_puts(out, "},\"values\":[");
}

static void dump_values(const struct series_reader *in, struct buf *out)
{
    char text[NUM_MAX];

    for (size_t k = 0; k < in->n; k++) {
        bool stale = value_is_absent(in->samples[k].v);

        buf_printf(out, "%s[%lld,\"%.*s\"]", k ? "," : "", (long long)in->samples[k].t,
                   stale ? 5 : (int)num_put_double(text, in->samples[k].v), stale ? "stale" : text);
    }
    buf_puts(out, "]}\n");
}

static int dump(struct store *store)
{
    CLEANUP(series_reader_done) struct series_reader in = {.store = store, .to_ms = INT64_MAX};
    BUF_AUTO(out, MAX_BYTES);
    int r;

    while ((r = series_next(&in)) > 0) {
        dump_labels(&in, &out);
        dump_values(&in, &out);
    }
    r = r ?: buf_failed(&out);
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
static int read_request(const char *path, struct buf *request, char why[DECODE_WHY_BYTES])
{
    BUF_AUTO(file, MAX_BYTES);
    BUF_AUTO(plain, MAX_BYTES);
    int r = file_read(path, &file);

    if (r < 0)
        return r;
    if (ends_with(path, ".gz"))
        r = inflate_body(buf_str(&file), &plain, NULL);
    else
        buf_put_str(&plain, buf_str(&file));
    r = r ?: buf_failed(&plain);
    if (r < 0)
        return r;
    if (strstr(path, ".json"))
        return decode_json(buf_str(&plain), &otlp__request__descriptor, request, why);
    buf_put_str(request, buf_str(&plain));
    return buf_failed(request);
}

static int take(struct ingest *in, const char *path)
{
    char why[DECODE_WHY_BYTES] = "";
    struct ingest_outcome outcome;
    BUF_AUTO(request, MAX_BYTES);
    size_t fields;
    int r = read_request(path, &request, why);

    r = r ?: decode_check(buf_str(&request), &fields, why);
    if (r == 0)
        ingest_request(in, buf_str(&request), UINT64_MAX, &outcome);
    for (unsigned i = STORE_OK + 1; i < OTLP_RESULTS && r == 0; i++)
        if (outcome.results[i])
            (void)fprintf(stderr, "rejected: %s %llu\n", otlp_result_word(i),
                          (unsigned long long)outcome.results[i]);
    if (r < 0)
        (void)fprintf(stderr, "%s: %s %s\n", path, strerror(-r), why);
    return r;
}

int main(int argc, char **argv)
{
    struct otlp_promotion promotion = {0};
    CLEANUP(cleanup_store_free) struct store *store = store_new(&clock_system);
    CLEANUP(cleanup_ingest_free) struct ingest *in = NULL;
    int i = 1, r = 0;

    for (; i < argc && argv[i][0] == '-'; i++)
        if (strcmp(argv[i], "--k8s-labels") == 0)
            promotion.k8s = true;
        else if (strncmp(argv[i], "--promote=", 10) == 0)
            promotion.names = str_of(argv[i] + 10);
    if (r == 0)
        in = ingest_new(store, &clock_system, &promotion);
    for (; i < argc && r == 0; i++)
        r = take(in, argv[i]);
    return (r ?: dump(store)) < 0;
}
