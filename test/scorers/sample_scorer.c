/* sample-scorer: an example of a scoring API.
 *
 *     GET  /healthz   200 while it runs
 *     GET  /config    the configuration that the hub reads
 *     POST /scoring   {"data":[{"metric":{..},"values":[[time,"value"],..]},..]}: the mean of each series
 *
 * The response depends on the request only; its results are in the order of the series. */
#include "test/scorers/serve.h"

#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { WHY_MAX = 256 };

static struct options {
    const char *listen, *name, *prometheus, *query, *token_file;
} options = {
    .listen = "127.0.0.1:8000",
    .name = "sample_my_score",
    .prometheus = "http://127.0.0.1:9090",
    .query = "sum by (node, namespace, pod) "
             "(rate(container_cpu_usage_seconds_total{container!=\"\", pod!=\"\"}[1m]))",
};

static struct answer get_healthz(const char *body, size_t n)
{
    (void)body;
    (void)n;
    return answer_json(MHD_HTTP_OK, json_pack("{s:s}", "status", "ok"));
}

static struct answer get_config(const char *body, size_t n)
{
    (void)body;
    (void)n;
    return answer_json(MHD_HTTP_OK,
                       json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:{s:s, s:i, s:i}}, s:{s:s, s:{s:s, s:i}}}",
                                 "name", "sample-scorer",                                     //
                                 "description", "A sample score for time series data",        //
                                 "source", "type", "Prometheus", "host", options.prometheus,  //
                                 "path", "/api/v1/query_range",                               //
                                 "params", "query", options.query, "range", 3600, "step", 60, //
                                 "scoring", "path", "/scoring",                               //
                                 "params", "name", options.name, "interval", 30));
}

/* A sample's value: a string, as Prometheus writes it, or a plain number. */
static bool read_value(const json_t *sample, double *ret)
{
    const json_t *value = json_array_get(sample, 1);
    const char *text = json_string_value(value);
    char *end;

    if (json_array_size(sample) != 2 || !json_is_number(json_array_get(sample, 0)))
        return false;
    if (json_is_number(value)) {
        *ret = json_number_value(value);
        return true;
    }
    if (!text || !*text || *text == ' ')
        return false;
    *ret = strtod(text, &end);
    return *end == '\0';
}

struct mean {
    long double sum; /* wider than double, so that large values of both signs do not overflow */
    size_t n;
};

static bool mean_add(struct mean *m, const json_t *sample)
{
    double v;

    if (!read_value(sample, &v))
        return false;
    if (isfinite(v)) {
        m->sum += v;
        m->n++;
    }
    return true;
}

/* Adds the result of one series to `results`; a series without a finite sample has none.
 * What is wrong with the series goes to `why`. */
static bool score_series(const json_t *series, size_t at, json_t *results, char why[WHY_MAX])
{
    json_t *metric = json_object_get(series, "metric");
    const json_t *values = json_object_get(series, "values");
    const json_t *one = json_object_get(series, "value"); /* what an instant query gives */
    struct mean m = {0};
    const json_t *sample;
    size_t i;

    if (!json_is_object(metric) || !(json_is_array(values) || json_is_array(one))) {
        (void)snprintf(why, WHY_MAX, "data[%zu]: expected an object with \"metric\" and \"values\"", at);
        return false;
    }
    json_array_foreach(values, i, sample)
    {
        if (!mean_add(&m, sample)) {
            (void)snprintf(why, WHY_MAX, "data[%zu].values[%zu]: expected [time, \"value\"]", at, i);
            return false;
        }
    }
    if (!values && !mean_add(&m, one)) {
        (void)snprintf(why, WHY_MAX, "data[%zu].value: expected [time, \"value\"]", at);
        return false;
    }
    if (m.n == 0)
        return true;
    /* `meta` says which score this is; it must not change from call to call, since it becomes a label. */
    if (json_object_set_new(metric, "meta", json_string("mean")) < 0 ||
        json_array_append_new(results, json_pack("{s:O, s:f}", "metric", metric, "score",
                                                 (double)(m.sum / (long double)m.n))) < 0) {
        (void)snprintf(why, WHY_MAX, "data[%zu]: out of memory", at);
        return false;
    }
    return true;
}

static struct answer post_scoring(const char *body, size_t n)
{
    json_error_t bad;
    json_auto_t *root = json_loadb(body ? body : "", n, JSON_ALLOW_NUL, &bad);
    json_auto_t *results = json_array();
    const json_t *data = json_object_get(root, "data");
    char why[WHY_MAX];
    const json_t *series;
    size_t i;

    if (!root)
        return answer_error(MHD_HTTP_BAD_REQUEST, "line %d, column %d: %s", bad.line, bad.column, bad.text);
    if (!json_is_array(data))
        return answer_error(MHD_HTTP_BAD_REQUEST, "expected an object with an array \"data\"");
    json_array_foreach(data, i, series)
    {
        if (!score_series(series, i, results, why))
            return answer_error(MHD_HTTP_BAD_REQUEST, "%s", why);
    }
    return answer_json(MHD_HTTP_OK, json_pack("{s:O}", "results", results));
}

static const char usage[] =
    "usage: sample-scorer [--listen HOST:PORT] [--name SCORE] [--prometheus URL] [--query PROMQL] "
    "[--token-file FILE]\n"
    "\n"
    "A scoring API that answers the mean of each series: GET /healthz, GET /config, POST /scoring.\n"
    "  --listen HOST:PORT  where to listen; port 0 takes a free one (127.0.0.1:8000)\n"
    "  --name SCORE        the score's name, for /config (sample_my_score)\n"
    "  --prometheus URL    the source, for /config (http://127.0.0.1:9090)\n"
    "  --query PROMQL      the query, for /config\n"
    "  --token-file FILE   calls of /scoring must carry the bearer token that this file holds\n";

static bool read_options(int argc, char **argv)
{
    static const struct option known[] = {
        {"listen", required_argument, NULL, 'l'},
        {"name", required_argument, NULL, 'n'},
        {"prometheus", required_argument, NULL, 'p'},
        {"query", required_argument, NULL, 'q'},
        {"token-file", required_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    const char **const fields[] = {['l'] = &options.listen,
                                   ['n'] = &options.name,
                                   ['p'] = &options.prometheus,
                                   ['q'] = &options.query,
                                   ['t'] = &options.token_file};
    int o;

    while ((o = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (o == 'h') {
            (void)fputs(usage, stdout);
            exit(0);
        }
        if (o == '?')
            return false;
        *fields[o] = optarg;
    }
    return optind == argc;
}

int main(int argc, char **argv)
{
    static const struct route routes[] = {
        {"GET", "/healthz", false, get_healthz},
        {"GET", "/config", false, get_config},
        {"POST", "/scoring", true, post_scoring},
    };

    if (!read_options(argc, argv)) {
        (void)fputs(usage, stderr);
        return 2;
    }
    return serve(&(struct server){.program = "sample-scorer",
                                  .listen = options.listen,
                                  .token_file = options.token_file,
                                  .routes = routes,
                                  .n_routes = sizeof(routes) / sizeof(routes[0])});
}
