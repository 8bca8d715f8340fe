/* What the files of the probe share; nothing else includes it. Calls go one way: probe.c decides when to
 * ask, probe_outcome.c what an outcome means, probe_ask.c sends one request, probe_token.c reads a token
 * from a Secret. */
#ifndef DS_HUB_PROBE_INTERNAL_H
#define DS_HUB_PROBE_INTERNAL_H

#include "controller/hub/probe/probe.h"
#include "controller/hub/rules/spec.h"
#include "controller/kube/client.h"
#include "exporter/base/clock.h"
#include "exporter/base/http.h"
#include "exporter/base/loop.h"
#include "exporter/score/credentials.h"

/* The outcome of one attempt. */
struct probe_result {
    bool ok;
    bool unasked;       /* the hub did not give the token: says nothing about the scoring API */
    const char *reason; /* a literal */
    double seconds;
    char message[768];
};

/* A GET request, with credentials from a Secret if `token` is set. At most one is in flight. */
struct probe_ask {
    const struct probe_env *env;
    const char *url; /* borrowed; NULL: cannot be asked */
    struct token_ref token;
    bool tls_only; /* of the credentials, only those of the connection; none if the Secret cannot be used */
    size_t max_answer;
    bool cut_answer; /* a longer answer is fine, as only its status matters */
    struct kube_call *secret_call;
    struct http_call *http_call;
    struct credentials *credentials; /* of the call */
    /* Called once for each successful start, never from within it. answer: NULL when none arrived. May
     * free the probe. */
    void (*ended)(struct probe_ask *a, const struct probe_result *r, const struct http_answer *answer);
};

struct probe {
    struct probe_env env;
    struct probe_callbacks cb;
    struct scorer_spec spec;
    bool has_spec;
    char *health_url;             /* NULL: there is none, */
    const char *health_url_error; /* for this reason */
    struct probe_ask health, config;
    struct probe_status status;
    unsigned successes;  /* of health, consecutive */
    unsigned unasked;    /* outcomes in a row that say nothing about configURL */
    bool is_provisional; /* health was determined for the previous API */
    bool running;
    struct timer timer; /* of the next probe; far ahead while one is in flight, since moving it cannot fail */
    mono_ms health_at;  /* when health is due; an earlier probe asks for the configuration alone */
    /* The probe in flight, if any. */
    bool health_due;        /* it includes health */
    long no_healthz;        /* HTTP status of a missing /healthz: health follows configURL. 0: it does not */
    bool has_config_answer; /* configURL answered, or could not be reached */
    struct probe_result
        config_result;       /* what configURL's outcome says about health; reason NULL: not asked */
    bool ended[PROBE_PARTS]; /* callbacks to be made */
    bool in_callback, freed; /* freed: by a callback */
};

/* ---- probe_outcome.c ---- */

void probe_health_ended(struct probe *p, const struct probe_result *r);
void probe_config_ended(struct probe *p, const struct probe_result *r, const struct http_answer *answer);
/* Sets health from the outcome of configURL, as there is no /healthz. */
void probe_health_from_config(struct probe *p);

/* ---- probe_ask.c ---- */

/* False when the request could not be sent, with the reason in *ret_error. */
MUST_USE bool probe_ask_start(struct probe_ask *a, struct probe_result *ret_error);
bool probe_ask_in_flight(const struct probe_ask *a);
void probe_ask_cancel(struct probe_ask *a);
/* A failure without an answer. */
void probe_result_fail(struct probe_result *r, const char *reason, const char *message);
/* Sets the message "<url>: <text>" on one line. User, password and query of the URL are left out, as they
 * may hold a token. */
void probe_result_describe(struct probe_result *r, const char *url, const char *text);

/* ---- probe_spec.c ---- */

/* Whether both have the same configURL token and the same rules for /config. URLs are not compared. */
bool probe_same_spec(const struct scorer_spec *a, const struct scorer_spec *b);
/* Leaves *ret NULL, with the reason in *ret_error, when the spec names no usable host. -ENOMEM. */
MUST_USE int probe_health_url(const struct scorer_spec *spec, char **ret, const char **ret_error);

/* ---- probe_token.c ---- */

/* False with the reason in *ret_error. */
MUST_USE bool probe_token_read(struct credentials **ret, const struct probe_env *env,
                               const struct kube_answer *a, const struct token_ref *ref,
                               struct probe_result *ret_error);
/* Sets the failure "spec.configAuth: Secret ..., key ...: <message>". */
void probe_token_fail(struct probe_result *r, const struct token_ref *ref, const char *fmt, ...)
    PRINTF_LIKE(3, 4);

#endif
