#include "controller/hub/probe/probe.h"

#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/spec.h"
#include "controller/hub/rules/url.h"
#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "exporter/base/backoff.h"
#include "exporter/base/base64.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/http.h"
#include "exporter/base/loop.h"
#include "exporter/base/rand.h"
#include "exporter/base/text.h"
#include "exporter/score/credentials.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

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

/* ---- The token ----
 *
 * The credentials for configURL, from a Secret. It is read for each request, so that a changed one takes
 * effect at once; none is kept. */

/* A failure without an answer. */
static void probe_result_fail(struct probe_result *r, const char *reason, const char *message)
{
    *r = (struct probe_result){.reason = reason};
    text_line(r->message, sizeof(r->message), str_of(message));
}

/* Sets the message "<url>: <text>" on one line. User, password and query of the URL are left out, as they
 * may hold a token. */
static void probe_result_describe(struct probe_result *r, const char *url, const char *text)
{
    char shown[256], all[1024];
    BUF_AUTO(people, 16 << 10);

    if (http_url_for_people((struct str){url, strcspn(url, "?#")}, &people) < 0)
        buf_done(&people);
    text_line(shown, sizeof(shown), people.n ? buf_str(&people) : STR("the API"));
    (void)snprintf(all, sizeof(all), "%s: %s", shown, text);
    text_line(r->message, sizeof(r->message), str_of(all));
}

/* Sets the failure "spec.configAuth: Secret ..., key ...: <message>". */
static void probe_token_fail(struct probe_result *r, const struct token_ref *ref, const char *fmt, ...)
{
    char why[512], key[128] = "", message[1024];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(why, sizeof(why), fmt, args);
    va_end(args);
    if (ref->key)
        (void)snprintf(key, sizeof(key), ", key \"%.80s\"", ref->key);
    (void)snprintf(message, sizeof(message), "spec.configAuth: Secret \"%.80s\"%s: %s", ref->name, key, why);
    probe_result_fail(r, "TokenMissing", message);
}

/* Secrets of other types have another purpose: a registry, a service account, a Helm release. Whoever may
 * write DynamicScorers must not be able to send them to a server of their choice. */
static bool is_allowed(const json_t *secret, const struct token_ref *ref, struct probe_result *ret_error)
{
    const char *type = cstr(kube_str(secret, "type", NULL));

    if (*type && strcmp(type, "Opaque") != 0)
        probe_token_fail(ret_error, ref, "the Secret's type is %.80s, only Opaque is allowed", type);
    else if (kube_get(secret, "data", "kubeconfig", NULL))
        probe_token_fail(ret_error, ref, "the Secret contains a kubeconfig, which is never sent");
    else
        return true;
    return false;
}

/* The Secret in an answer of the API server. */
struct probe_secret {
    struct secrets secrets;
    const json_t *object;
};

static int probe_secret_read(struct secrets *s, const char *name, const char *key, struct buf *into,
                             const char **ret_why)
{
    const struct probe_secret *secret = CONTAINER_OF(s, const struct probe_secret, secrets);
    struct str value = kube_text(secret->object, "data", key, NULL);
    int r = value.p ? base64_decode(value, into) : -ENOENT;

    (void)name;
    if (r == -EINVAL)
        *ret_why = "not valid base64";
    return r;
}

static bool token_decode(struct credentials **ret, const json_t *secret, const struct token_ref *ref,
                         struct probe_result *ret_error)
{
    struct probe_secret from = {.secrets.read = probe_secret_read, .object = secret};
    char why[256], message[512];
    int r = credentials_read(ret, &from.secrets, ref->name, ref->key, why);

    if (r == -ENOMEM) {
        probe_result_fail(ret_error, "OutOfMemory", "out of memory");
    } else if (r < 0) { /* why: secret "name", ... */
        (void)snprintf(message, sizeof(message), "spec.configAuth: S%s", why + 1);
        probe_result_fail(ret_error, "TokenMissing", message);
    }
    return r == 0;
}

/* False with the reason in *ret_error. */
static bool probe_token_read(struct credentials **ret, const struct probe_env *env,
                             const struct kube_answer *a, const struct token_ref *ref,
                             struct probe_result *ret_error)
{
    bool ok = false;

    if (a->verdict == KUBE_OK)
        ok = is_allowed(a->object, ref, ret_error) && token_decode(ret, a->object, ref, ret_error);
    else if (a->http_status == 404)
        probe_token_fail(ret_error, ref, "the Secret does not exist in namespace %.80s", env->namespace);
    else
        probe_token_fail(ret_error, ref, "%s", a->why);
    /* Also one that has just returned, and refuses while it starts. */
    ret_error->unasked = a->verdict != KUBE_OK && kube_absence_ms(env->hub) < KUBE_GRACE_MS;
    kube_wipe_strings(kube_map(a->object, "data", NULL));
    return ok;
}

/* ---- What a probe needs of a spec. Pure ---- */

static bool same_str(const char *a, const char *b)
{
    return strcmp(cstr(a), cstr(b)) == 0;
}

static bool same_auth(const struct auth *a, const struct auth *b)
{
    return same_str(a->token.name, b->token.name) && same_str(a->token.key, b->token.key) &&
           (a->allowed_hosts == b->allowed_hosts || json_equal(a->allowed_hosts, b->allowed_hosts));
}

/* Compares all that effective_refuses() reads. */
static bool same_rules(const struct api_config *a, const struct api_config *b)
{
    if (a->n_sources != b->n_sources || !same_str(a->scoring.host, b->scoring.host) ||
        !same_auth(&a->scoring.auth, &b->scoring.auth))
        return false;
    for (size_t i = 0; i < a->n_sources; i++)
        if (a->sources[i].type != b->sources[i].type || !same_str(a->sources[i].host, b->sources[i].host) ||
            !same_auth(&a->sources[i].auth, &b->sources[i].auth))
            return false;
    return true;
}

/* Whether both have the same configURL token and the same rules for /config. URLs are not compared. */
static bool probe_same_spec(const struct scorer_spec *a, const struct scorer_spec *b)
{
    return a->mode == b->mode && a->health_check == b->health_check &&
           same_str(a->config_token.name, b->config_token.name) &&
           same_str(a->config_token.key, b->config_token.key) && same_rules(&a->own, &b->own);
}

/* Leaves *ret NULL, with the reason in *ret_error, when the spec names no usable host. -ENOMEM. */
static int probe_health_url(const struct scorer_spec *spec, char **ret, const char **ret_error)
{
    const char *base = spec->config_url ? spec->config_url : spec->own.scoring.host;
    CLEANUP(cleanup_free) char *origin = NULL;
    int r = base ? url_origin(base, &origin) : 0;

    if (r < 0)
        return r;
    *ret_error = !base              ? "neither spec.configURL nor spec.scoring.host is set"
                 : spec->config_url ? "spec.configURL: expected an http or https URL without a user"
                                    : "spec.scoring.host: expected an http or https URL without a user";
    if (!origin || !*origin)
        return 0;
    return asprintf(ret, "%s/healthz", origin) < 0 ? -ENOMEM : 0;
}

/* ---- One GET request of a probe, and what its answer says ---- */

enum { MAX_SECRET_BYTES = 3 << 20 };

static const char *const ask_reasons[HTTP_ERRORS] = {
    [HTTP_URL] = "InvalidURL",      [HTTP_DNS] = "DNS",
    [HTTP_CONNECT] = "Unreachable", [HTTP_TLS] = "TLS",
    [HTTP_TIMEOUT] = "Timeout",     [HTTP_TOO_LARGE] = "TooLarge",
    [HTTP_BROKEN] = "Broken",       [HTTP_REDIRECT] = "Redirected",
    [HTTP_MEMORY] = "OutOfMemory",
};

/* The members in which frameworks describe an error. */
static const char *ask_error_of(const json_t *body)
{
    return kube_str(body, "detail", NULL) ?: kube_str(body, "error", NULL) ?: kube_str(body, "message", NULL);
}

/* "HTTP 500 Internal Server Error: model not loaded" */
static void ask_status_text(char *out, size_t size, const struct http_answer *a)
{
    json_auto_t *body = NULL;
    const char *error = NULL;

    if (a->status / 100 != 2 && kube_json_parse(&body, buf_str(&a->body), NULL) == 0)
        error = ask_error_of(body);
    text_http_status(out, size, a->status,
                     a->status / 100 == 2 ? STR("")
                     : error              ? str_of(error)
                                          : buf_str(&a->body));
}

static void ask_on_answer(void *arg, struct http_answer *a)
{
    struct probe_ask *ask = arg;
    struct probe_result r = {.seconds = a->seconds};
    char text[512];

    ask->http_call = NULL;
    ask->credentials = credentials_free(ask->credentials);
    if (a->error != HTTP_OK) {
        r.reason = a->refused ? "Forbidden" : ask_reasons[a->error];
        probe_result_describe(&r, ask->url, a->reason);
    } else {
        r.ok = a->status / 100 == 2;
        r.reason = r.ok ? "Healthy" : "HTTPStatus";
        ask_status_text(text, sizeof(text), a);
        probe_result_describe(&r, ask->url, text);
    }
    ask->ended(ask, &r, a);
}

static bool ask_send(struct probe_ask *a, struct probe_result *ret_error)
{
    const struct probe_settings *s = a->env->settings;
    struct http_request rq = {.url = a->url,
                              .max_answer = a->max_answer,
                              .cut_answer = a->cut_answer,
                              .timeout_ms = s->timeout_ms,
                              .public_only = s->public_only};
    int r;

    if (a->tls_only)
        credentials_apply_tls(a->credentials, &rq);
    else
        credentials_apply(a->credentials, &rq);
    r = http_start(&a->http_call, a->env->http, &rq, ask_on_answer, a);
    if (r < 0)
        a->credentials = credentials_free(a->credentials);
    if (r == -ENOMEM)
        probe_result_fail(ret_error, "OutOfMemory", "out of memory");
    else if (r < 0)
        probe_result_fail(ret_error, "InvalidURL", "the URL cannot be used");
    return r == 0;
}

static void ask_on_secret(void *arg, struct kube_answer *answer)
{
    struct probe_ask *a = arg;
    struct probe_result error = {0};
    bool ok;

    a->secret_call = NULL;
    ok = probe_token_read(&a->credentials, a->env, answer, &a->token, &error);
    if (!ok && a->tls_only && !error.unasked)
        ok = true;
    if (!ok || !ask_send(a, &error))
        a->ended(a, &error, NULL);
}

static bool ask_secret(struct probe_ask *a, struct probe_result *ret_error)
{
    const struct kube_request rq = {.method = KUBE_GET,
                                    .resource = &kube_secrets,
                                    .namespace = a->env->namespace,
                                    .name = a->token.name,
                                    .max_answer = MAX_SECRET_BYTES,
                                    .timeout_ms = a->env->settings->timeout_ms};

    (void)ret_error;
    a->secret_call = kube_start(a->env->hub, &rq, ask_on_secret, a);
    return true;
}

/* False when the request could not be sent, with the reason in *ret_error. */
static bool probe_ask_start(struct probe_ask *a, struct probe_result *ret_error)
{
    return a->token.name ? ask_secret(a, ret_error) : ask_send(a, ret_error);
}

static bool probe_ask_in_flight(const struct probe_ask *a)
{
    return a->secret_call || a->http_call;
}

static void probe_ask_cancel(struct probe_ask *a)
{
    a->http_call = http_cancel(a->http_call);
    a->secret_call = kube_cancel(a->secret_call);
    a->credentials = credentials_free(a->credentials);
}

/* ---- What an outcome means ----
 *
 * What the outcomes of requests mean: the verdict on health, and whether a configuration is accepted. */

static void outcome_keep(struct probe *p, enum probe_what what, const struct probe_result *r)
{
    struct probe_part *part = what == PROBE_HEALTH ? &p->status.probe : &p->status.config;

    part->asked = true;
    part->ok = r->ok;
    part->failures = r->ok ? 0 : part->failures + 1;
    (void)snprintf(part->reason, sizeof(part->reason), "%s", r->reason);
    memcpy(part->message, r->message, sizeof(part->message));
    part->seconds = r->seconds;
    history_add(&p->status.history[what], 1, loop_wall(p->env.loop), &part->seconds);
    part->at_ms = loop_wall(p->env.loop).ms;
    p->ended[what] = true;
}

static void outcome_health_ended(struct probe *p, const struct probe_result *r)
{
    const struct probe_settings *s = p->env.settings;
    enum probe_health *health = &p->status.health;

    outcome_keep(p, PROBE_HEALTH, r);
    p->successes = r->ok ? p->successes + 1 : 0;
    if (p->status.probe.failures >= s->unhealthy_after)
        *health = HEALTH_INACTIVE;
    else if (p->successes >= s->healthy_after || (r->ok && *health == HEALTH_UNKNOWN))
        *health = HEALTH_ACTIVE;
    if (r->ok || *health == HEALTH_INACTIVE)
        p->is_provisional = false;
}

/* Sets health from the outcome of configURL, as there is no /healthz. */
static void probe_health_from_config(struct probe *p)
{
    struct probe_result r = {.ok = true, .reason = "Healthy"};
    bool is_private = p->no_healthz == 401 || p->no_healthz == 403;
    char status[64], text[128];

    if (p->has_config_answer || (is_private && p->config_result.reason)) {
        r = p->config_result;
    } else {
        text_http_status(status, sizeof(status), p->no_healthz, STR(""));
        (void)snprintf(text, sizeof(text), "%s: %s, but the server responds", status,
                       is_private ? "access denied" : "no such path");
        probe_result_describe(&r, p->health_url, text);
    }
    p->no_healthz = 0;
    if (!r.unasked)
        outcome_health_ended(p, &r);
}

/* Parses the body; the result is NULL, or the reason why it is rejected. */
static const char *outcome_read_config(const struct probe *p, struct str body, struct api_config *ret,
                                       char why[SPEC_WHY_BYTES])
{
    CLEANUP(effective_done) struct effective made = {0};
    int r = api_config_parse(ret, body, why);

    if (r == -EINVAL)
        return "InvalidConfig";
    r = r ?: effective_make(&made, p->env.name, &p->spec, ret);
    if (r < 0) {
        (void)snprintf(why, SPEC_WHY_BYTES, "out of memory");
        return "OutOfMemory";
    }
    memcpy(why, made.error, sizeof(made.error));
    return made.reason == EFFECTIVE_OK || made.only_spec_is_wrong ? NULL
           : made.reason == EFFECTIVE_TOKEN_HOST                  ? "TokenHostNotAllowed"
                                                                  : "InvalidConfig";
}

/* Accepts the configuration, or keeps the last good one: a summary that agents would reject must not
 * replace an active one. */
static void outcome_accept_config(struct probe *p, struct str body, struct probe_result *r)
{
    CLEANUP(api_config_done) struct api_config new = {0};
    char why[SPEC_WHY_BYTES];
    const char *rejected = outcome_read_config(p, body, &new, why);

    r->ok = !rejected;
    r->reason = rejected ?: "Synced";
    if (rejected) {
        probe_result_describe(r, p->spec.config_url, why);
        return;
    }
    /* An equal one stays at its address, by which callers see that nothing changed. */
    if (p->status.synced.owner && json_equal(p->status.synced.owner, new.owner))
        return;
    api_config_done(&p->status.synced);
    p->status.synced = new;
    new = (struct api_config){0};
}

static void outcome_config_ended(struct probe *p, const struct probe_result *r,
                                 const struct http_answer *answer)
{
    struct probe_result config = *r;

    p->config_result = *r;
    p->has_config_answer = answer;
    p->unasked = r->unasked ? p->unasked + 1 : 0;
    if (r->unasked)
        return;
    if (p->spec.mode != SYNC_FULL)
        return;
    if (config.ok)
        outcome_accept_config(p, buf_str(&answer->body), &config);
    outcome_keep(p, PROBE_CONFIG, &config);
}

/* ---- When to ask ----
 *
 * When to ask what.
 *
 * A probe asks for health and configuration at once, or for the configuration alone. It ends with the last
 * answer; only then is the next one scheduled. Callbacks come last in every path, since they may change,
 * stop or free the probe. */

enum {
    RETRY_MS = 1000,
    FAR_MS = 24 * 3600 * 1000,
    MAX_HEALTH_BYTES = 64 << 10,
};

static void probe_on_timer(struct timer *t);
static void probe_on_health(struct probe_ask *a, const struct probe_result *r,
                            const struct http_answer *answer);
static void probe_on_config(struct probe_ask *a, const struct probe_result *r,
                            const struct http_answer *answer);

struct probe *probe_new(const struct probe_env *env, const struct probe_callbacks *cb)
{
    struct probe *p = xcalloc(1, sizeof(*p));

    p->env = *env;
    p->cb = *cb;
    p->timer.fn = probe_on_timer;
    p->health = (struct probe_ask){
        .env = &p->env, .max_answer = MAX_HEALTH_BYTES, .cut_answer = true, .ended = probe_on_health};
    p->config = (struct probe_ask){.env = &p->env, .ended = probe_on_config};
    return p;
}

struct probe *probe_free(struct probe *p)
{
    if (!p)
        return NULL;
    probe_stop(p);
    if (p->in_callback) {
        p->freed = true;
        return NULL;
    }
    for (size_t i = 0; i < PROBE_PARTS; i++)
        p->status.history[i] = history_free(p->status.history[i]);
    api_config_done(&p->status.synced);
    if (p->has_spec)
        scorer_spec_done(&p->spec);
    free(p->health_url);
    free(p);
    return NULL;
}

const struct probe_status *probe_status(const struct probe *p)
{
    return &p->status;
}

static void probe_forget_config(struct probe *p)
{
    api_config_done(&p->status.synced);
    p->status.synced = (struct api_config){0};
    p->status.config = (struct probe_part){0};
}

static bool probe_wants_health(const struct probe *p)
{
    return p->spec.health_check == HEALTH_CHECK_HUB;
}

void probe_resume(struct probe *p, enum probe_health health, struct api_config *synced)
{
    p->status.health = probe_wants_health(p) ? health : HEALTH_UNKNOWN;
    p->status.probe = p->status.config = (struct probe_part){0};
    p->successes = 0;
    p->is_provisional = false;
    if (!synced)
        return;
    api_config_done(&p->status.synced);
    p->status.synced = *synced;
    *synced = (struct api_config){0};
    if (p->has_spec && p->spec.mode == SYNC_NONE)
        probe_forget_config(p);
}

/* ---- The schedule ---- */

static void probe_move_timer(struct probe *p, int64_t in_ms)
{
    loop_timer_set(p->env.loop, &p->timer, mono_add(loop_now(p->env.loop), in_ms));
}

static void probe_in(struct probe *p, int64_t ms)
{
    probe_move_timer(p, ms);
    p->status.next_ms = loop_wall(p->env.loop).ms + ms;
}

/* An API with a verdict is asked at a steady pace, so that its thresholds are also durations; one that
 * recovers need not wait. */
static int64_t health_pause(const struct probe *p)
{
    const struct probe_status *s = &p->status;
    int64_t interval = p->env.settings->interval_ms;

    if (!probe_wants_health(p))
        return interval;
    if ((s->health == HEALTH_UNKNOWN || p->is_provisional) && !s->probe.ok)
        return backoff_doubled_ms(s->probe.failures, RETRY_MS, interval);
    if (s->health == HEALTH_INACTIVE && s->probe.ok && RETRY_MS < interval)
        return RETRY_MS;
    return interval;
}

/* Plus or minus a tenth. */
static int64_t probe_jitter(int64_t ms, uint64_t permille)
{
    return ms - ms / 10 + (int64_t)((uint64_t)(ms / 5) * permille / 1000);
}

/* A configuration that failed may be retried before health is due. */
static void probe_schedule(struct probe *p)
{
    const struct probe_part *config = &p->status.config;
    mono_ms now = loop_now(p->env.loop);
    uint64_t permille = rand_below(1001); /* the same for both, so that they coincide where they can */
    int64_t ms, other;

    if (p->health_due)
        p->health_at = mono_add(now, probe_jitter(health_pause(p), permille));
    p->health_due = false;
    ms = p->health_at.ms - now.ms;
    if (p->unasked || (config->asked && !config->ok)) {
        unsigned nth = p->unasked ? p->unasked : config->failures;

        other = probe_jitter(backoff_doubled_ms(nth, RETRY_MS, p->env.settings->interval_ms), permille);
        ms = other < ms ? other : ms;
    }
    probe_in(p, ms > 0 ? ms : 0);
}

/* ---- Requests ---- */

static void probe_ask_health(struct probe *p)
{
    struct probe_result error;

    if (!p->health_url)
        probe_result_fail(&error, "InvalidURL", p->health_url_error);
    else if (probe_ask_start(&p->health, &error))
        return;
    outcome_health_ended(p, &error);
}

static void probe_ask_config(struct probe *p)
{
    struct probe_result error;

    if (!p->spec.config_url)
        probe_result_fail(&error, "InvalidURL", "spec.configURL: required when spec.configSyncMode is Full");
    else if (!p->health_url)
        probe_result_fail(&error, "InvalidURL", p->health_url_error);
    else if (probe_ask_start(&p->config, &error))
        return;
    outcome_config_ended(p, &error, NULL);
}

/* The parts as they are now, whatever callbacks do meanwhile. */
static void probe_call_back(struct probe *p)
{
    const struct probe_part parts[PROBE_PARTS] = {
        [PROBE_HEALTH] = p->status.probe, [PROBE_CONFIG] = p->status.config};
    const struct probe_callbacks cb = p->cb;
    bool ended[PROBE_PARTS];

    memcpy(ended, p->ended, sizeof(ended));
    memset(p->ended, 0, sizeof(p->ended));
    p->in_callback = true;
    for (unsigned i = 0; i < PROBE_PARTS && !p->freed; i++)
        if (ended[i] && cb.ended)
            cb.ended(cb.arg, (enum probe_what)i, &parts[i]);
    p->in_callback = false;
    if (p->freed)
        (void)probe_free(p);
}

/* Called last, whenever a request has ended. The probe may be gone afterwards. */
static void probe_settle(struct probe *p)
{
    if (p->no_healthz && !probe_ask_in_flight(&p->config))
        probe_health_from_config(p);
    if (!probe_ask_in_flight(&p->health) && !probe_ask_in_flight(&p->config))
        probe_schedule(p);
    probe_call_back(p);
}

/* There is no /healthz, or it needs credentials that are meant for configURL. */
static bool lacks_healthz(const struct http_answer *a)
{
    static const long statuses[] = {401, 403, 404, 405, 501};

    for (size_t i = 0; a->error == HTTP_OK && i < ARRAY_SIZE(statuses); i++)
        if (a->status == statuses[i])
            return true;
    return false;
}

static void probe_on_health(struct probe_ask *a, const struct probe_result *r,
                            const struct http_answer *answer)
{
    struct probe *p = CONTAINER_OF(a, struct probe, health);

    if (answer && lacks_healthz(answer)) {
        p->no_healthz = answer->status;
        if (p->spec.mode == SYNC_NONE && p->spec.config_url)
            probe_ask_config(p);
    } else if (!r->unasked) {
        outcome_health_ended(p, r);
    }
    probe_settle(p);
}

static void probe_on_config(struct probe_ask *a, const struct probe_result *r,
                            const struct http_answer *answer)
{
    struct probe *p = CONTAINER_OF(a, struct probe, config);

    outcome_config_ended(p, r, answer);
    probe_settle(p);
}

static void probe_on_timer(struct timer *t)
{
    struct probe *p = CONTAINER_OF(t, struct probe, timer);

    probe_move_timer(p, FAR_MS);
    p->status.next_ms = 0;
    if (!p->has_spec || (!probe_wants_health(p) && p->spec.mode == SYNC_NONE))
        return;
    p->has_config_answer = false;
    p->config_result = (struct probe_result){0};
    p->health_due = p->health_at.ms <= loop_now(p->env.loop).ms;
    if (p->spec.mode == SYNC_FULL)
        probe_ask_config(p);
    if (p->health_due && probe_wants_health(p))
        probe_ask_health(p);
    probe_settle(p);
}

static void probe_cancel(struct probe *p)
{
    probe_ask_cancel(&p->health);
    probe_ask_cancel(&p->config);
    p->no_healthz = 0;
}

void probe_start(struct probe *p)
{
    if (p->running)
        return;
    loop_timer_set(p->env.loop, &p->timer, loop_now(p->env.loop));
    p->running = true;
    p->health_at = loop_now(p->env.loop);
    p->status.next_ms = loop_wall(p->env.loop).ms;
}

void probe_stop(struct probe *p)
{
    probe_cancel(p);
    loop_timer_clear(p->env.loop, &p->timer);
    p->running = false;
    p->status.next_ms = 0;
}

/* ---- A new spec ---- */

/* The API is another one. Clusters keep the scorer of a healthy API until the new one has a verdict:
 * removed now, it would be restored a moment later. */
static void probe_forget_health(struct probe *p)
{
    if (p->status.health == HEALTH_INACTIVE)
        p->status.health = HEALTH_UNKNOWN;
    p->status.probe = p->status.config = (struct probe_part){0};
    p->successes = 0;
    p->is_provisional = true;
}

/* Likewise for a scorer that was distributed whatever its health. */
static void probe_change_health_check(struct probe *p, const struct scorer_spec *spec)
{
    bool is_hub = spec->health_check == HEALTH_CHECK_HUB;

    if (probe_wants_health(p) == is_hub)
        return;
    p->status.health = is_hub ? HEALTH_ACTIVE : HEALTH_UNKNOWN;
    p->status.probe = (struct probe_part){0};
    p->successes = 0;
    p->is_provisional = is_hub;
}

static void probe_adopt(struct probe *p, const struct scorer_spec *spec, char *health_url)
{
    probe_change_health_check(p, spec);
    free(p->health_url);
    p->health_url = health_url;
    if (p->has_spec)
        scorer_spec_done(&p->spec);
    p->spec = scorer_spec_copy(spec);
    p->has_spec = true;
    p->health.url = health_url;
    p->config.url = p->spec.config_url;
    p->config.token = p->spec.config_token;
    p->health.tls_only = health_url && p->spec.config_url && strncmp(health_url, "https:", 6) == 0;
    p->health.token = p->health.tls_only ? p->spec.config_token : (struct token_ref){0};
    p->config.max_answer = spec->mode == SYNC_FULL ? API_CONFIG_MAX_BYTES : MAX_HEALTH_BYTES;
    p->config.cut_answer = spec->mode == SYNC_NONE;
    if (spec->mode == SYNC_NONE)
        probe_forget_config(p);
}

int probe_set(struct probe *p, const struct scorer_spec *spec)
{
    char *url = NULL;
    const char *url_error = NULL;
    bool first = !p->has_spec, other_api, same;
    int r = probe_health_url(spec, &url, &url_error);

    if (r < 0)
        return r;
    other_api = !first && (strcmp(cstr(p->spec.config_url), cstr(spec->config_url)) != 0 ||
                           strcmp(cstr(p->health_url), cstr(url)) != 0);
    /* After a failure any change may be the remedy. */
    same = !first && !other_api && p->status.config.failures == 0 && probe_same_spec(&p->spec, spec);
    p->health_url_error = url_error;
    probe_adopt(p, spec, url);
    if (other_api)
        probe_forget_health(p);
    if (same)
        return 0;
    probe_cancel(p);
    p->health_at = loop_now(p->env.loop);
    if (p->running)
        probe_in(p, 0);
    return 0;
}
