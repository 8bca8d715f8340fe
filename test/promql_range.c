/* Answers queries over samples that it reads, and sends the same samples to a Prometheus: for comparisons of
 * exporter/otlp's queries with it. Reads JSON, a line each, and answers each query with a line:
 *
 *     {"labels": {"__name__": "m"}, "samples": [[1700000000000, "1.5"], [1700000015000, "stale"]]}
 *     {"generate": 100, "from": ms, "to": ms, "step": ms}       counters; says how many samples
 *     {"now": ms}              the clock
 *     {"push": "http://127.0.0.1:9090/api/v1/write"}            sends all series by remote write
 *     {"query": "rate(m[5m])", "start": ms, "end": ms, "step": ms}
 *
 * Numbers of samples are strings, as strtod() reads them. */
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/num/num.h"
#include "exporter/otlp/query.h"
#include "exporter/otlp/series.h"

#include <curl/curl.h>
#include <errno.h>
#include <jansson.h>
#include <snappy-c.h>
#include <stdio.h>
#include <time.h>

enum { SLICE_MS = 20 * 60 * 1000, BODY_BYTES = 4 << 20, MAX_LABELS = 64 };

struct series {
    struct series_label labels[MAX_LABELS]; /* sorted */
    size_t n_labels;
    struct sample *samples;
    size_t n, pushed;
};

struct all {
    struct store *store;
    struct series *series;
    size_t n;
    CURL *curl;
};

static unix_ms now_ms;

static mono_ms fixed_mono(const struct clock *c)
{
    (void)c;
    return (mono_ms){0};
}

static unix_ms fixed_wall(const struct clock *c)
{
    (void)c;
    return now_ms;
}

static const struct clock fixed_clock = {.mono = fixed_mono, .wall = fixed_wall};

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    (void)fprintf(stderr, "promql_range: %s\n", what);
    exit(1);
}

static struct series *add_series(struct all *all)
{
    all->series = reallocarray(all->series, all->n + 1, sizeof(*all->series));
    check(all->series, "out of memory");
    all->series[all->n] = (struct series){0};
    return &all->series[all->n++];
}

static int label_order(const void *a, const void *b)
{
    return str_cmp(((const struct series_label *)a)->name, ((const struct series_label *)b)->name);
}

static void add_label(struct series *s, const char *name, const char *value)
{
    check(s->n_labels < MAX_LABELS, "too many labels");
    s->labels[s->n_labels++] = (struct series_label){str_of(strdup(name)), str_of(strdup(value))};
}

/* Stores the samples of a series whose labels are complete. */
static void store(struct all *all, struct series *s)
{
    BUF_AUTO(labels, 1 << 20);
    struct series *x;

    qsort(s->labels, s->n_labels, sizeof(*s->labels), label_order);
    for (size_t i = 0; i < s->n_labels; i++) {
        buf_put_str(&labels, s->labels[i].name);
        buf_putc(&labels, LABEL_END);
        buf_put_str(&labels, s->labels[i].value);
        buf_putc(&labels, LABEL_END);
    }
    check(buf_failed(&labels) == 0, "too many labels");
    check(store_enter(all->store, buf_str(&labels), all->n, &x) == STORE_OK, "series refused");
    store_lock(all->store);
    for (size_t i = 0; i < s->n; i++)
        check(store_append(all->store, x, s->samples[i].t, s->samples[i].v) == STORE_OK, "samples refused");
    store_release(all->store, x);
    store_unlock(all->store);
}

static double read_value(const char *text)
{
    return strcmp(text, "stale") == 0 ? value_absent() : strtod(text, NULL);
}

static void all_done(struct all *all)
{
    for (size_t i = 0; i < all->n; i++) {
        for (size_t k = 0; k < all->series[i].n_labels; k++) {
            free((char *)all->series[i].labels[k].name.p);
            free((char *)all->series[i].labels[k].value.p);
        }
        free(all->series[i].samples);
    }
    free(all->series);
    (void)store_free(all->store);
}

static void read_series(struct all *all, const json_t *labels, const json_t *samples)
{
    struct series *s = add_series(all);
    const char *name;
    json_t *value, *pair;
    size_t i;

    json_object_foreach((json_t *)labels, name, value) add_label(s, name, json_string_value(value));
    s->n = json_array_size(samples);
    s->samples = calloc(s->n + 1, sizeof(*s->samples));
    check(s->samples, "out of memory");
    json_array_foreach(samples, i, pair) s->samples[i] = (struct sample){
        json_integer_value(json_array_get(pair, 0)), read_value(json_string_value(json_array_get(pair, 1)))};
    store(all, s);
}

/* Answers with the number of samples, and the bytes of the copies that push() sends. Counters that grow by
 * up to a thousand thousandths, and are reset once in a while. */
static void generate(struct all *all, const json_t *order)
{
    int64_t n = json_integer_value(json_object_get(order, "generate"));
    int64_t from = json_integer_value(json_object_get(order, "from"));
    int64_t to = json_integer_value(json_object_get(order, "to"));
    int64_t step = json_integer_value(json_object_get(order, "step"));
    uint64_t random = 1;

    for (int64_t i = 0; i < n; i++) {
        struct series *s = add_series(all);
        int64_t value = 0;
        char text[64];

        add_label(s, "__name__", "container_cpu_usage_seconds_total");
        (void)snprintf(text, sizeof(text), "pod-%05lld-7d4f9c6b8-x2x%lld", (long long)i, (long long)i % 10);
        add_label(s, "pod", text);
        (void)snprintf(text, sizeof(text), "namespace-%lld", (long long)i % 50);
        add_label(s, "namespace", text);
        (void)snprintf(text, sizeof(text), "node-%lld", (long long)i % 100);
        add_label(s, "node", text);
        add_label(s, "container", "app");
        s->n = (size_t)((to - from) / step + 1);
        s->samples = calloc(s->n, sizeof(*s->samples));
        check(s->samples, "out of memory");
        for (size_t k = 0; k < s->n; k++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            value = (random >> 33) % 500 == 0 ? 0 : value + (int64_t)((random >> 40) % 1000);
            s->samples[k] = (struct sample){from + (int64_t)k * step, (double)value / 1000};
        }
        store(all, s);
    }
    (void)printf("{\"samples\":%lld,\"generated_bytes\":%lld}\n", (long long)(n * ((to - from) / step + 1)),
                 (long long)n * (long long)(sizeof(struct series) +
                                            (size_t)((to - from) / step + 1) * sizeof(struct sample)));
}

/* ---- Remote write, version 1.0 ---- */

static void put_number(struct buf *b, uint64_t v)
{
    char *to;

    check(buf_reserve(b, 10, &to) == 0, "out of memory");
    b->n = (size_t)(put_varint(to, v) - b->p);
}

static void put_bytes(struct buf *b, unsigned field, struct str s)
{
    put_number(b, field << 3 | 2);
    put_number(b, s.n);
    buf_put_str(b, s);
    check(buf_failed(b) == 0, "out of memory");
}

static void put_labels(struct buf *b, const struct series *s)
{
    for (size_t i = 0; i < s->n_labels; i++) {
        BUF_AUTO(label, 1 << 20);

        put_bytes(&label, 1, s->labels[i].name);
        put_bytes(&label, 2, s->labels[i].value);
        put_bytes(b, 1, buf_str(&label));
    }
}

static void put_sample(struct buf *b, const struct sample *sample)
{
    BUF_AUTO(text, 64);

    buf_putc(&text, 1 << 3 | 1);
    buf_put(&text, &sample->v, sizeof(sample->v));
    check(buf_failed(&text) == 0, "out of memory");
    put_number(&text, 2 << 3);
    put_number(&text, (uint64_t)sample->t);
    put_bytes(b, 2, buf_str(&text));
}

static void post(struct all *all, struct buf *body)
{
    size_t n = snappy_max_compressed_length(body->n);
    char *packed = malloc(n);
    long status = 0;

    check(packed && snappy_compress(body->p, body->n, packed, &n) == SNAPPY_OK, "out of memory");
    curl_easy_setopt(all->curl, CURLOPT_POSTFIELDS, packed);
    curl_easy_setopt(all->curl, CURLOPT_POSTFIELDSIZE, (long)n);
    check(curl_easy_perform(all->curl) == CURLE_OK, "remote write failed");
    curl_easy_getinfo(all->curl, CURLINFO_RESPONSE_CODE, &status);
    check(status / 100 == 2, "remote write refused");
    free(packed);
    body->n = 0;
}

/* The samples of the series up to a time. */
static void push_slice(struct all *all, struct series *s, int64_t to, struct buf *body)
{
    BUF_AUTO(one, 64u << 20);

    if (s->pushed == s->n || s->samples[s->pushed].t >= to)
        return;
    put_labels(&one, s);
    for (; s->pushed < s->n && s->samples[s->pushed].t < to; s->pushed++)
        put_sample(&one, &s->samples[s->pushed]);
    put_bytes(body, 1, buf_str(&one));
    if (body->n > BODY_BYTES)
        post(all, body);
}

/* In slices of time, since Prometheus refuses samples that are older than its others by an hour. */
static void push(struct all *all, const char *url)
{
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Encoding: snappy");
    int64_t first = INT64_MAX, last = INT64_MIN;
    BUF_AUTO(body, 128u << 20);

    all->curl = curl_easy_init();
    check(all->curl && headers, "out of memory");
    headers = curl_slist_append(headers, "Content-Type: application/x-protobuf");
    curl_easy_setopt(all->curl, CURLOPT_URL, url);
    curl_easy_setopt(all->curl, CURLOPT_HTTPHEADER, headers);
    for (size_t i = 0; i < all->n; i++)
        if (all->series[i].n) {
            first = all->series[i].samples[0].t < first ? all->series[i].samples[0].t : first;
            last = all->series[i].samples[all->series[i].n - 1].t > last
                       ? all->series[i].samples[all->series[i].n - 1].t
                       : last;
        }
    for (int64_t to = first; first <= last && to <= last;) {
        to += SLICE_MS;
        for (size_t i = 0; i < all->n; i++)
            push_slice(all, &all->series[i], to, &body);
        if (body.n)
            post(all, &body);
    }
    curl_slist_free_all(headers);
    curl_easy_cleanup(all->curl);
    (void)printf("{}\n");
}

/* ---- Queries ---- */

static double cpu_seconds(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* {"seconds": 0.1, "result": [...]} or {"error": "..."} */
static void answer(struct all *all, const char *text, const struct query_range *range)
{
    struct query *query = NULL;
    char why[QUERY_WHY_BYTES] = "out of memory";
    double before = cpu_seconds();
    atomic_bool cancelled = false;
    size_t series;
    BUF_AUTO(out, (size_t)2 << 30);
    int r = query_parse(&query, str_of(text), str_of(text), why);

    if (r == 0)
        r = query_run(query, all->store, range, &cancelled, &out, &series, why);
    (void)query_free(query);
    if (r < 0) {
        json_t *error = json_string(why);
        char *quoted = json_dumps(error, JSON_ENCODE_ANY);

        (void)printf("{\"error\":%s}\n", quoted);
        free(quoted);
        json_decref(error);
        return;
    }
    (void)printf("{\"seconds\":%.6f,\"result\":[", cpu_seconds() - before);
    if (out.n)
        (void)fwrite(out.p, 1, out.n, stdout);
    (void)printf("]}\n");
}

static int64_t read_ms(const json_t *order, const char *key)
{
    return json_integer_value(json_object_get(order, key));
}

static void obey(struct all *all, const json_t *order)
{
    const json_t *labels = json_object_get(order, "labels");
    const char *query = json_string_value(json_object_get(order, "query"));
    const char *url = json_string_value(json_object_get(order, "push"));

    if (json_object_get(order, "now"))
        now_ms = (unix_ms){read_ms(order, "now")};
    else if (labels)
        read_series(all, labels, json_object_get(order, "samples"));
    else if (json_object_get(order, "generate"))
        generate(all, order);
    else if (url)
        push(all, url);
    else
        answer(all, query,
               &(struct query_range){read_ms(order, "start"), read_ms(order, "end"), read_ms(order, "step")});
    (void)fflush(stdout);
}

int main(void)
{
    struct all all = {0};
    char *line = NULL;
    size_t size = 0;

    all.store = store_new(&fixed_clock);
    store_set_limits(all.store, UINT64_C(4) << 30, 1000000);
    store_set_age(all.store, INT64_C(1000) * 86400 * 1000);
    while (getline(&line, &size, stdin) > 0) {
        json_t *order = json_loads(line, 0, NULL);

        check(order, "not JSON");
        obey(&all, order);
        json_decref(order);
    }
    free(line);
    all_done(&all);
    return 0;
}
