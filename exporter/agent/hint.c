/* The table of what to check, by the class of a round's error and by its stage. Owns nothing. */
#include "exporter/agent/hint.h"

const char *hint_of_error(enum round_error e, enum round_stage stage)
{
    /* A second one where the stages differ. */
    static const char *const hints[ROUND_ERRORS][2] = {
        [ROUND_OK] = {"nothing"},
        [ROUND_URL] = {"sourceEndpoint in the configuration", "scoringEndpoint in the configuration"},
        [ROUND_DNS] = {"the host name in sourceEndpoint, and DNS where the agent runs",
                       "the host name in scoringEndpoint, and DNS where the agent runs"},
        [ROUND_CONNECT] =
            {"that the server is running and listening, and firewalls and network policies in between"},
        [ROUND_TLS] = {"the server's certificate: it must be valid for this host name and signed by a CA in "
                       "SSL_CERT_FILE or the system's store"},
        [ROUND_TIMEOUT] =
            {"the query: select fewer series, a shorter sourceRange or a longer sourceStep; or raise "
             "timeout and limits.roundTime",
             "why the scoring API takes so long, or raise timeout and limits.roundTime"},
        [ROUND_TOO_LARGE] =
            {"the query: select fewer series or a longer sourceStep; or raise limits.responseBytes",
             "what the scoring API sends, or raise limits.responseBytes"},
        [ROUND_BROKEN] = {"what the server, or a proxy before it, sends: curl -v shows it"},
        [ROUND_MEMORY] = {"the memory limit of the agent, and limits.memory: fewer or smaller responses at a "
                          "time, or more memory"},
        [ROUND_AUTH] = {"token_url and the client's credentials in the source's Secret, and the log of the "
                        "identity provider",
                        "token_url and the client's credentials in the scoring API's Secret, and the log of "
                        "the identity provider"},
        [ROUND_HTTP_4XX] = {"the path of sourceEndpoint and its token",
                            "the path of scoringEndpoint, its token, and what the scoring API expects: "
                            "{\"data\":[{\"metric\":{...},\"values\":[...]}]}"},
        [ROUND_HTTP_5XX] = {"the log of the server at sourceEndpoint", "the log of the scoring API"},
        [ROUND_HTTP_OTHER] = {"the path of sourceEndpoint", "the path of scoringEndpoint"},
        [ROUND_QUERY] = {"the query in the UI of the query engine"},
        [ROUND_JSON] = {"that sourceEndpoint is the query API, not a web page or a login form",
                        "that scoringEndpoint is the scoring API, not a web page or a login form"},
        [ROUND_SHAPE] = {"that sourceEndpoint is the query API: /api/v1/query_range",
                         "the response of the scoring API: {\"results\":[{\"metric\":{...},\"score\":1.5}]}"},
        [ROUND_SECRET] = {"the names of the source's Secret and key, and --secrets.dir",
                          "the names of the scoring API's Secret and key, and --secrets.dir"},
        [ROUND_SERIES] = {"the query, or raise limits.series and limits.seriesPerScorer"},
    };
    const char *const *both = hints[e < ROUND_ERRORS ? e : ROUND_OK];

    if (stage == STAGE_SCORING && both[1])
        return both[1];
    return both[0];
}
