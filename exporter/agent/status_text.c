#include "exporter/agent/status_text.h"

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
