#include "exporter/agent/status_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

int out_end(struct out *o)
{
    if (o->error)
        buf_truncate(o->b, o->mark);
    return o->error;
}

void out_str(struct out *o, struct str s)
{
    if (o->error == 0)
        o->error = buf_put_str(o->b, s);
}

void out_puts(struct out *o, const char *s)
{
    out_str(o, str_of(s));
}

void out_printf(struct out *o, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (n > 0)
        out_str(o, (struct str){text, size_min((size_t)n, sizeof(text) - 1)});
}

void out_url(struct out *o, const char *url)
{
    if (o->error == 0)
        o->error = http_url_for_people(str_of(url), o->b);
}

/* Both only read; their owner has no const ways to them. */
int64_t status_now(const struct agent *a)
{
    return loop_wall(agent_loop((struct agent *)(uintptr_t)a)).ms;
}

size_t status_page_memory(const struct agent *a)
{
    return page_memory(agent_page((struct agent *)(uintptr_t)a));
}

void status_duration(int64_t ms, char out[STATUS_WORD])
{
    static const struct {
        int64_t seconds, lesser;
        char unit, lesser_unit;
    } scales[] = {{86400, 3600, 'd', 'h'}, {3600, 60, 'h', 'm'}, {60, 1, 'm', 's'}};
    int64_t s = ms > 0 ? ms / 1000 : 0;

    for (size_t i = 0; i < ARRAY_SIZE(scales); i++) {
        long long whole = s / scales[i].seconds, rest = s % scales[i].seconds / scales[i].lesser;

        if (whole && rest)
            (void)snprintf(out, STATUS_WORD, "%lld%c %lld%c", whole, scales[i].unit, rest,
                           scales[i].lesser_unit);
        else if (whole)
            (void)snprintf(out, STATUS_WORD, "%lld%c", whole, scales[i].unit);
        if (whole)
            return;
    }
    (void)snprintf(out, STATUS_WORD, "%lld s", (long long)s);
}

void status_when(int64_t now_ms, int64_t at_ms, char out[STATUS_WORD])
{
    int64_t ago = now_ms - at_ms;
    char length[STATUS_WORD];

    status_duration(ago < 0 ? -ago : ago, length);
    if (at_ms == 0)
        (void)snprintf(out, STATUS_WORD, "never");
    else if (ago > -1000 && ago < 1000)
        (void)snprintf(out, STATUS_WORD, "now");
    else if (ago < 0)
        (void)snprintf(out, STATUS_WORD, "in %.20s", length);
    else
        (void)snprintf(out, STATUS_WORD, "%.20s ago", length);
}

void status_seconds(double s, char out[STATUS_WORD])
{
    if (s >= 60)
        status_duration(s < 1e12 ? (int64_t)(s * 1000) : INT64_MAX, out);
    else if (s >= 0.9995)
        (void)snprintf(out, STATUS_WORD, "%.3g s", s);
    else
        (void)snprintf(out, STATUS_WORD, "%.*f ms", s < 0.000995 ? 2 : s < 0.00995 ? 1 : 0, s * 1000);
}

void status_bytes(uint64_t n, char out[STATUS_WORD])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)n / 1024;
    size_t unit = 0;

    if (n < 1024) {
        (void)snprintf(out, STATUS_WORD, "%u B", (unsigned)n);
        return;
    }
    for (; v >= 1023.5 && unit + 1 < ARRAY_SIZE(units); unit++)
        v /= 1024;
    (void)snprintf(out, STATUS_WORD, "%.*f %s", v < 9.95 && fabs(v - round(v)) >= 0.05 ? 1 : 0, v,
                   units[unit]);
}

void status_count(uint64_t n, char out[STATUS_WORD])
{
    char digits[24];
    int len = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)n);
    size_t at = 0;

    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = '\0';
}

const char *status_hint(enum round_error e, enum round_stage stage)
{
    /* Two where the stages differ. */
    static const char *const hints[ROUND_ERRORS][2] = {
        [ROUND_OK] = {"nothing"},
        [ROUND_URL] = {"sourceEndpoint, as it is written in the configuration",
                       "scoringEndpoint, as it is written in the configuration"},
        [ROUND_DNS] = {"the host name in sourceEndpoint, and whether DNS answers here",
                       "the host name in scoringEndpoint, and whether DNS answers here"},
        [ROUND_CONNECT] =
            {"whether the server runs and listens there, and firewalls or network policies on the way"},
        [ROUND_TLS] =
            {"the server's certificate: made for this host name, and signed by an authority known here "
             "(SSL_CERT_FILE, or the system's store)"},
        [ROUND_TIMEOUT] =
            {"the query: fewer series, a shorter sourceRange or a longer sourceStep; or allow more time "
             "(timeout, limits.roundTime)",
             "why the scorer takes so long, or allow more time (timeout, limits.roundTime)"},
        [ROUND_TOO_LARGE] = {"the query: fewer series or a longer sourceStep; or raise limits.responseBytes",
                             "what the scorer sends, or raise limits.responseBytes"},
        [ROUND_BROKEN] = {"what the server, or a proxy before it, sends: curl -v shows it"},
        [ROUND_MEMORY] = {"how much memory this process may use"},
        [ROUND_HTTP_4XX] = {"the path of sourceEndpoint, and its token",
                            "the path of scoringEndpoint, its token, and what the scorer takes: "
                            "{\"data\":[{\"metric\":{...},\"values\":[...]}]}"},
        [ROUND_HTTP_5XX] = {"the log of the server that sourceEndpoint names", "the scorer's own log"},
        [ROUND_HTTP_OTHER] = {"the path of sourceEndpoint", "the path of scoringEndpoint"},
        [ROUND_QUERY] = {"the query: try it in the query engine's own page"},
        [ROUND_JSON] = {"whether sourceEndpoint is the query API, not a web page or a login",
                        "whether scoringEndpoint is the scoring API, not a web page or a login"},
        [ROUND_SHAPE] = {"whether sourceEndpoint is the query API: /api/v1/query_range",
                         "the scorer's answer: {\"results\":[{\"metric\":{...},\"score\":1.5}]}"},
        [ROUND_SECRET] = {"the names of the source's Secret and key, and --secrets.dir",
                          "the names of the scorer's Secret and key, and --secrets.dir"},
        [ROUND_SERIES] = {"the query, or raise limits.series and limits.seriesPerScorer"},
    };
    const char *const *both = hints[e < ROUND_ERRORS ? e : ROUND_OK];

    return stage == STAGE_SCORING && both[1] ? both[1] : both[0];
}

WORD_TABLE(status_source_word, enum source_type, SOURCE_NONE + 1,
           {[SOURCE_NONE] = "None", [SOURCE_PROMETHEUS] = "Prometheus"});

bool status_scorer_asked(const struct scorer_status *st)
{
    return st->rounds && (st->error == ROUND_OK || st->stage == STAGE_SCORING);
}

size_t status_series(const struct scorer *s)
{
    const struct batch *b = scorer_batch(s);

    return b ? series_count(b->set) : 0;
}

struct totals status_totals(const struct agent *a)
{
    struct totals t = {0};

    for (size_t i = 0; i < agent_scorers(a); i++) {
        t.by_state[scorer_state(agent_scorer(a, i))]++;
        t.series += status_series(agent_scorer(a, i));
    }
    return t;
}

/* Puts series i into a list of the n best so far, of which it keeps `most`. */
static void rank_one(const double *values, size_t *list, size_t n, size_t most, size_t i, bool high)
{
    size_t at = n;

    if (n == most) {
        double worst = values[list[n - 1]];
        if (high ? !(values[i] > worst) : !(values[i] < worst))
            return;
        at = n - 1;
    }
    for (; at > 0; at--) {
        double before = values[list[at - 1]];
        if (high ? !(values[i] > before) : !(values[i] < before))
            break;
        list[at] = list[at - 1];
    }
    list[at] = i;
}

void status_rank(const struct batch *b, size_t most, struct ranking *ret)
{
    size_t count = b ? series_count(b->set) : 0;

    *ret = (struct ranking){0};
    for (size_t i = 0; i < count; i++) {
        if (isnan(b->values[i])) {
            ret->nans++;
            continue;
        }
        rank_one(b->values, ret->highest, ret->n, most, i, true);
        rank_one(b->values, ret->lowest, ret->n, most, i, false);
        ret->numbers++;
        ret->n = size_min(ret->numbers, most);
    }
}

size_t status_labels(struct out *o, const struct batch *b, size_t series, struct buf *scratch,
                     struct shown_label ret[SHOWN_LABELS])
{
    static const enum ds_label order[SHOWN_LABELS] = {DS_NODE,      DS_NAMESPACE, DS_APP, DS_POD,
                                                      DS_CONTAINER, DS_DEVICE,    DS_META};
    struct str values[DS_LABELS];
    size_t n = 0;

    (void)scratch;
    if (o->error)
        return 0;
    series_labels(b->set, series, values);
    for (unsigned i = 0; i < SHOWN_LABELS; i++)
        if (values[order[i]].n)
            ret[n++] = (struct shown_label){i, ds_label_sources[order[i]].p, values[order[i]]};
    return n;
}
