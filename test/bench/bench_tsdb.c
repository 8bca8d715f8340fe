/* Series in memory: 100,000 series x 1 h at 15 s. Bytes a sample, resident memory, and what appending,
 * selecting and reading cost, for each kind of values; each in a process of its own. With a port, sends
 * the first 10,000 series to a peer by remote write 1.0 instead: bench_tsdb KIND URL. */
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/regex.h"
#include "exporter/base/varint.h"
#include "exporter/tsdb/snapshot.h"
#include "exporter/tsdb/tsdb.h"
#include "test/bench/gen.h"
#include "test/bench/measure.h"

#include <curl/curl.h>
#include <math.h>
#include <snappy-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    SERIES = 100000,
    METRICS = 100,
    SAMPLES = 240,
    STEP_MS = 15000,
    PEER_SERIES = 10000,
    PEER_PART = 1000
};

static const int64_t START = 1790000000000;

enum kind { CONSTANT, COUNTER, GAUGE, DECIMAL, DOUBLE, KINDS };

static const char *const kind_words[KINDS] = {"constant", "counter", "gauge", "decimal", "double"};

static int64_t now_ms = START;

static unix_ms bench_wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){now_ms};
}

static const struct clock bench_clock = {.wall = bench_wall};

static double last_values[SERIES];

static double next_value(enum kind kind, unsigned series)
{
    double *v = &last_values[series];

    switch (kind) {
    case CONSTANT:
        return *v = series;
    case COUNTER: /* increments of 0 to 199 */
        return *v += floor(drand48() * 200);
    case GAUGE: /* a whole number that wanders */
        return *v += floor(drand48() * 21) - 10;
    case DECIMAL: /* percents with two digits */
        return *v = round(drand48() * 10000) / 100;
    default:
        return *v = drand48();
    }
}

/* Whole milliseconds of jitter, as of an SDK's timer. */
static int64_t next_time(unsigned step, unsigned series)
{
    return START + (int64_t)step * STEP_MS + series % 1000 + (int64_t)(drand48() * 4);
}

struct names {
    char text[8][64];
    struct tsdb_label labels[8];
};

/* 1,000 pods with 100 metrics each. */
static void make_names(unsigned i, struct names *ret)
{
    static const char *const names[] = {"__name__",  "container", "instance", "job",
                                        "namespace", "node",      "pod",      "service_version"};
    unsigned pod = i / METRICS;

    (void)snprintf(ret->text[0], 64, "app_requests_by_some_kind_%u_total", i % METRICS);
    (void)snprintf(ret->text[1], 64, "main");
    (void)snprintf(ret->text[2], 64, "10.%u.%u.%u:8080", pod >> 16, pod >> 8 & 255, pod & 255);
    (void)snprintf(ret->text[3], 64, "shop/service-%u", pod % 50);
    (void)snprintf(ret->text[4], 64, "namespace-%u", pod % 20);
    (void)snprintf(ret->text[5], 64, "worker-%u.example.internal", pod % 30);
    (void)snprintf(ret->text[6], 64, "service-%u-6c9f8d7b5-%05u", pod % 50, pod);
    (void)snprintf(ret->text[7], 64, "1.%u.0", pod % 3);
    for (size_t k = 0; k < 8; k++)
        ret->labels[k] = (struct tsdb_label){str_of(names[k]), str_of(ret->text[k])};
}

static double resident_bytes(void)
{
    unsigned long size, resident;
    FILE *f = fopen("/proc/self/statm", "re");

    must(f && fscanf(f, "%lu %lu", &size, &resident) == 2);
    (void)fclose(f);
    return (double)resident * 4096;
}

static void print(enum kind kind, const char *what, double value)
{
    measure_print(value, "%s_%s", kind_words[kind], what);
}

static double measure_select(struct tsdb *t, enum tsdb_op op, const char *name, const char *value,
                             size_t want)
{
    char why[TSDB_WHY_BYTES];
    struct regex *regex = NULL;
    struct tsdb_view *v = NULL;
    struct tsdb_matcher m = {.op = op, .name = str_of(name), .value = str_of(value)};
    double from;

    if (op == TSDB_RE)
        must(regex_new(&regex, m.value, why) == 0);
    m.regex = regex;
    from = measure_cpu_ms();
    must(tsdb_select(t, &m, 1, START, INT64_MAX, UINT64_MAX, &v, why) == 0);
    from = measure_cpu_ms() - from;
    must(tsdb_view_count(v) == want);
    (void)tsdb_view_free(v);
    (void)regex_free(regex);
    return from;
}

static double measure_read(struct tsdb *t)
{
    char why[TSDB_WHY_BYTES];
    struct tsdb_view *v = NULL;
    double from, sum = 0, x;
    int64_t at;

    must(tsdb_select(t, NULL, 0, START, INT64_MAX, UINT64_MAX, &v, why) == 0);
    from = measure_cpu_ms();
    for (size_t i = 0; i < tsdb_view_count(v); i++) {
        struct tsdb_iter it;

        for (tsdb_iter_init(&it, v, i); tsdb_iter_next(&it, &at, &x);)
            sum += x;
    }
    from = measure_cpu_ms() - from;
    measure_keep(&sum);
    (void)tsdb_view_free(v);
    return from;
}

/* Saves the series and loads them into another store, which has the memory of both. */
static void measure_restart(enum kind kind, struct tsdb *t)
{
    char dir[] = "/tmp/bench_tsdb.XXXXXX", file[64];
    struct snapshot_loaded loaded;
    struct tsdb *next = NULL;
    double from;

    must(mkdtemp(dir) &&
         tsdb_new(&next, &(struct tsdb_options){&bench_clock, UINT64_C(1) << 40, SERIES}) == 0);
    from = measure_cpu_ms();
    must(snapshot_save(t, dir) == 0);
    print(kind, "save_ms", measure_cpu_ms() - from);
    from = measure_cpu_ms();
    must(snapshot_load(next, dir, &loaded) == 0);
    print(kind, "load_ms", measure_cpu_ms() - from);
    must(loaded.series == SERIES && loaded.samples == (uint64_t)SERIES * SAMPLES);
    (void)snprintf(file, sizeof(file), "%s/otlp-series", dir);
    must(unlink(file) == 0 && rmdir(dir) == 0);
    (void)tsdb_free(next);
}

static void bench_store(enum kind kind)
{
    static uint64_t refs[SERIES];
    static struct tsdb_sample samples[SERIES];
    static enum tsdb_result results[SERIES];
    double before, from, refs_ms = 0, append_ms = 0;
    struct tsdb *t = NULL;
    struct tsdb_stats stats;
    struct names n;

    memset(refs, 1, sizeof(refs)); /* resident before the store is */
    memset(samples, 1, sizeof(samples));
    memset(results, 1, sizeof(results));
    memset(last_values, 0, sizeof(last_values));
    for (unsigned i = 0; i < SERIES; i++)
        last_values[i] = floor(drand48() * 1e6);
    before = resident_bytes();
    must(tsdb_new(&t, &(struct tsdb_options){&bench_clock, UINT64_C(1) << 40, SERIES}) == 0);
    tsdb_set_age(t, 3600000);
    for (unsigned i = 0; i < SERIES; i++) {
        make_names(i, &n);
        from = measure_cpu_ms();
        must(tsdb_ref(t, n.labels, 8, &refs[i]) == TSDB_OK);
        refs_ms += measure_cpu_ms() - from;
    }
    print(kind, "empty_mb", (resident_bytes() - before) / 1e6);
    for (unsigned step = 0; step < SAMPLES; step++) {
        now_ms = START + (int64_t)step * STEP_MS;
        for (unsigned i = 0; i < SERIES; i++)
            samples[i] = (struct tsdb_sample){refs[i], next_time(step, i), next_value(kind, i)};
        from = measure_cpu_ms();
        must(tsdb_append(t, samples, SERIES, results) == 0);
        append_ms += measure_cpu_ms() - from;
    }
    tsdb_stats(t, &stats);
    must(stats.samples == (uint64_t)SERIES * SAMPLES);
    print(kind, "resident_mb", (resident_bytes() - before) / 1e6);
    print(kind, "bytes_per_sample", (double)stats.bytes / (double)stats.samples);
    print(kind, "ref_ns", refs_ms * 1e6 / SERIES);
    print(kind, "append_ns", append_ms * 1e6 / SERIES / SAMPLES);
    print(kind, "read_ns", measure_read(t) * 1e6 / SERIES / SAMPLES);
    print(kind, "select_name_ms", measure_select(t, TSDB_EQ, "__name__", n.text[0], SERIES / METRICS));
    print(kind, "select_pod_ms", measure_select(t, TSDB_EQ, "pod", n.text[6], METRICS));
    print(kind, "select_regex_ms", measure_select(t, TSDB_RE, "pod", ".*-00.*7", METRICS * 100));
    print(kind, "select_all_ms", measure_select(t, TSDB_NE, "pod", "none", SERIES));
    measure_restart(kind, t);
    (void)tsdb_free(t);
}

/* --- to a peer --- */

static void put_field(struct buf *b, unsigned field, const void *p, size_t n)
{
    char head[2 * VARINT_MAX], *end = put_varint(head, field << 3 | 2);

    end = put_varint(end, n);
    must(buf_put(b, head, (size_t)(end - head)) == 0 && buf_put(b, p, n) == 0);
}

/* A TimeSeries with one sample. */
static void put_series(struct buf *b, const struct names *n, int64_t at, double v)
{
    BUF_AUTO(series, 1 << 20);
    char sample[2 + 8 + VARINT_MAX] = {1 << 3 | 1}, *end;

    for (size_t i = 0; i < 8; i++) {
        BUF_AUTO(label, 1 << 20);

        put_field(&label, 1, n->labels[i].name.p, n->labels[i].name.n);
        put_field(&label, 2, n->labels[i].value.p, n->labels[i].value.n);
        put_field(&series, 1, label.p, label.n);
    }
    memcpy(sample + 1, &v, sizeof(v));
    sample[9] = 2 << 3;
    end = put_varint(sample + 10, (uint64_t)at);
    put_field(&series, 2, sample, (size_t)(end - sample));
    put_field(b, 1, series.p, series.n);
}

static void post(CURL *curl, const struct buf *body)
{
    size_t n = snappy_max_compressed_length(body->n);
    char *packed = malloc(n);
    long code = 0;

    must(packed && snappy_compress(body->p, body->n, packed, &n) == SNAPPY_OK);
    (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, packed);
    (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)n);
    must(curl_easy_perform(curl) == CURLE_OK);
    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    must(code / 100 == 2);
    free(packed);
}

/* The hour that ends now, since peers refuse what is old. */
static void bench_peer(enum kind kind, const char *url)
{
    static const char *const heads[] = {"Content-Encoding: snappy", "Content-Type: application/x-protobuf",
                                        "X-Prometheus-Remote-Write-Version: 0.1.0"};
    struct curl_slist *list = NULL;
    CURL *curl = curl_easy_init();
    int64_t shift = ((int64_t)time(NULL) - SAMPLES * STEP_MS / 1000) * 1000 - START;
    struct names n;

    for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
        list = curl_slist_append(list, heads[i]);
    must(curl && list);
    (void)curl_easy_setopt(curl, CURLOPT_URL, url);
    (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
    for (unsigned step = 0; step < SAMPLES; step++)
        for (unsigned first = 0; first < PEER_SERIES; first += PEER_PART) {
            BUF_AUTO(body, 64 << 20);

            for (unsigned i = first; i < first + PEER_PART; i++) {
                make_names(i, &n);
                put_series(&body, &n, next_time(step, i) + shift, next_value(kind, i));
            }
            post(curl, &body);
        }
    curl_slist_free_all(list);
    curl_easy_cleanup(curl);
}

int main(int argc, char **argv)
{
    measure_init();
    for (unsigned kind = 0; kind < KINDS; kind++) {
        int status;
        pid_t child;

        if (argc == 3 && strcmp(argv[1], kind_words[kind]) == 0) {
            bench_peer((enum kind)kind, argv[2]);
            return 0;
        }
        (void)fflush(stdout);
        child = argc == 1 ? fork() : -1;
        if (child == 0) {
            bench_store((enum kind)kind);
            return 0;
        }
        must(argc == 3 || (waitpid(child, &status, 0) == child && status == 0));
    }
    return 0;
}
