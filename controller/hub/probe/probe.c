/* Owns each scoring API's health and last good configuration, and the requests that find them out. Called
 * by observed/scorer.c, and by the loop when a timer is due or a request has ended; tells of each attempt
 * by env.ended. On the loop; never waits.
 *
 * From top to bottom: what became of a request (outcome), the credentials for it (token), one request
 * (ask), what its outcome means (probe_keep, probe_accept_config), and when to ask next (probe_schedule). */
#include "controller/hub/probe/probe.h"

#include "controller/hub/probe/probe_reason.h"
#include "controller/kube/answer.h"
#include "controller/kube/client.h"
#include "controller/kube/json.h"
#include "controller/kube/reach.h"
#include "controller/kube/request.h"
#include "controller/kube/resource.h"
#include "controller/kube/verdict.h"
#include "exporter/base/alloc.h"
#include "exporter/base/backoff.h"
#include "exporter/base/base64.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/base/random.h"
#include "exporter/base/text.h"
#include "exporter/http/cause.h"
#include "exporter/http/http.h"
#include "exporter/http/rule.h"
#include "exporter/metric/history.h"
#include "exporter/score/credentials.h"

#include <errno.h>
#include <stdarg.h>

enum {
    RETRY_MS = 1000,
    MAX_HEALTH_BYTES = 64 << 10,
    MAX_SECRET_BYTES = 3 << 20,
    TOKEN_FAILURE_BYTES = 16 << 10, /* more than names and reasons have; the message is cut */
};

/* The outcome of one attempt. */
struct outcome {
    struct probe_part part;
    bool is_inconclusive; /* the hub did not give the token: says nothing about the scoring API */
    bool answered;        /* or could not be reached */
};

/* A GET request, with credentials from a Secret if `token` is set. At most one is in flight. The Secret is
 * read for each request, so that a changed one takes effect at once; none is kept. */
struct probe_ask {
    struct probe *probe;
    const char *url; /* borrowed */
    struct token_ref token;
    bool tls_only; /* of the credentials, only those of the connection; none if the Secret cannot be used */
    size_t max_answer;
    bool cut_answer; /* a longer answer is fine, as only its status matters */
    struct kube_call *secret_call;
    struct http_call *http_call;
    struct credentials *credentials; /* of the call */
    struct outcome outcome;
    /* Called once for each start, perhaps from within it. answer: NULL when none arrived. */
    void (*ended)(struct probe *p, const struct http_response *answer);
};

struct probe {
    struct probe_env env;
    struct scorer_spec spec; /* own.owner is NULL before probe_set() */
    char *health_url;        /* NULL: there is none, */
    const char *url_error;   /* for this reason */
    struct probe_ask health, config;
    struct probe_status status;
    unsigned successes;    /* of health, consecutive */
    unsigned inconclusive; /* outcomes in a row that say nothing about configURL */
    bool is_provisional;   /* health was determined for the previous API */
    bool running;
    struct timer timer; /* of the next probe; far ahead while one is in flight */
    mono_ms health_at;  /* when health is due; an earlier probe asks for the configuration alone */
    /* The probe in flight, if any. */
    bool starting;
    bool health_due; /* it includes health */
    long no_healthz; /* HTTP status of a missing /healthz: health follows configURL. 0: it does not */
};

/* ---- Outcomes ---- */

static void PRINTF_LIKE(3, 4) outcome_fail(struct outcome *o, enum probe_reason reason, const char *fmt, ...)
{
    CLEANUP(cleanup_free) char *text = NULL;
    va_list args;

    va_start(args, fmt);
    text = xvasprintf(fmt, args);
    va_end(args);
    o->part.reason = reason;
    text_line(o->part.message, sizeof(o->part.message), str_of(text));
}

/* Sets "<url>: <text>". User, password and query of the URL are left out, as they may hold a token. */
static void outcome_describe(struct outcome *o, const char *url, const char *text)
{
    char shown[256];
    BUF_AUTO(people, 16 << 10);

    http_url_for_people((struct str){url, strcspn(url, "?#")}, &people);
    text_line(shown, sizeof(shown), people.n ? buf_str(&people) : STR("the API"));
    outcome_fail(o, o->part.reason, "%s: %s", shown, text);
}

/* ---- The token ---- */

/* Sets the failure "spec.configAuth: Secret "namespace/name", key "key": <why>". */
static void token_fail(struct probe_ask *a, const char *why)
{
    const struct token_ref *ref = &a->token;
    BUF_AUTO(text, TOKEN_FAILURE_BYTES);

    buf_printf(&text, "spec.configAuth: Secret \"%s/%s\"", a->probe->env.namespace, ref->name);
    if (ref->key)
        buf_printf(&text, ", key \"%s\"", ref->key);
    buf_printf(&text, ": %s", why);
    outcome_fail(&a->outcome, PROBE_TOKEN_MISSING, "%.*s", STR_ARG(buf_str(&text)));
}

/* The Secret in an answer of the API server. */
struct token_secret {
    struct secrets secrets;
    const json_t *object;
};

static int token_read_key(struct secrets *s, const char *name, const char *key, struct buf *into,
                          const char **ret_why)
{
    const struct token_secret *secret = CONTAINER_OF(s, const struct token_secret, secrets);
    struct str value = kube_text(secret->object, "data", key, NULL);
    int r = value.p ? base64_decode(value, into) : -ENOENT;

    (void)name;
    if (r == -EINVAL)
        *ret_why = "not valid base64";
    return r;
}

/* NULL with the reason in the outcome. Secrets of other types have another purpose: a registry, a service
 * account, a Helm release. Whoever may write DynamicScorers must not be able to send them to a server of
 * their own. */
static struct credentials *token_of_secret(const json_t *secret, struct probe_ask *a)
{
    struct token_secret from = {.secrets = {.namespace = a->probe->env.namespace, .read = token_read_key},
                                .object = secret};
    const char *type = cstr(kube_str(secret, "type", NULL));
    struct credentials *credentials = NULL;
    char why[CREDENTIALS_WHY_BYTES] = "secret";
    CLEANUP(cleanup_free) char *wrong = xasprintf("the Secret's type is %s, only Opaque is allowed", type);

    if (*type && strcmp(type, "Opaque") != 0)
        token_fail(a, wrong);
    else if (kube_get(secret, "data", "kubeconfig", NULL))
        token_fail(a, "the Secret contains a kubeconfig, which is never sent");
    else if (credentials_read(&credentials, &from.secrets, a->token.name, a->token.key, why) < 0)
        outcome_fail(&a->outcome, PROBE_TOKEN_MISSING, "spec.configAuth: S%s",
                     why + 1); /* why: secret "name", ... */
    return credentials;
}

/* ---- One request ---- */

/* There is no row for 422, which is a status like any other here. */
static const struct http_rule probe_rules[] = {
    {200, 299, HTTP_OK, PROBE_HEALTHY},
    {401, 401, HTTP_OK, PROBE_ACCESS_DENIED},
    {403, 403, HTTP_OK, PROBE_ACCESS_DENIED},
    {404, 405, HTTP_OK, PROBE_NO_SUCH_PATH},
    {501, 501, HTTP_OK, PROBE_NO_SUCH_PATH},
    {0, 0, HTTP_URL, PROBE_INVALID_URL},
    {0, 0, HTTP_DNS, PROBE_DNS},
    {0, 0, HTTP_CONNECT, PROBE_UNREACHABLE},
    {0, 0, HTTP_FORBIDDEN, PROBE_FORBIDDEN},
    {0, 0, HTTP_TLS, PROBE_TLS},
    {0, 0, HTTP_TIMEOUT, PROBE_TIMEOUT},
    {0, 0, HTTP_TOO_LARGE, PROBE_TOO_LARGE},
    {0, 0, HTTP_BROKEN, PROBE_BROKEN},
    {0, 0, HTTP_REDIRECT, PROBE_REDIRECTED},
    {0, 0, HTTP_MEMORY, PROBE_OUT_OF_MEMORY},
    {0, 0, HTTP_AUTH, PROBE_TOKEN_REQUEST_FAILED},
    {0, HTTP_STATUS_MAX, HTTP_ANY, PROBE_HTTP_STATUS},
};

/* What is said of a request that was refused: with which credentials it was sent. */
static const char *ask_credentials_text(const struct probe_ask *ask)
{
    if (ask->tls_only)
        return "";
    return ask->credentials ? ask->credentials->shown : " without credentials (spec.configAuth is not set)";
}

/* "HTTP 500 Internal Server Error: model not loaded", by the members in which frameworks put an error. */
static void ask_status_text(const struct probe_ask *ask, char *out, size_t size,
                            const struct http_response *a)
{
    struct str text = a->status / 100 == 2 ? STR("") : buf_str(&a->body);
    json_auto_t *body = NULL;
    const char *error = NULL;

    if (text.n && kube_json_parse(&body, text, NULL) == 0)
        error = kube_str(body, "detail", NULL) ?: kube_str(body, "error", NULL)
                                                ?: kube_str(body, "message", NULL);
    text_http_status(out, size, a->status, ask_credentials_text(ask), error ? str_of(error) : text);
}

static void ask_on_answer(void *arg, struct http_response *a)
{
    struct probe_ask *ask = arg;
    struct probe_part *part = &ask->outcome.part;
    char text[512];

    ask->http_call = NULL;
    ask->outcome = (struct outcome){.part.seconds = a->seconds, .answered = true};
    part->reason = (enum probe_reason)HTTP_VERDICT(probe_rules, a->status, a->error);
    part->ok = part->reason == PROBE_HEALTHY;
    if (a->error != HTTP_OK) {
        outcome_describe(&ask->outcome, ask->url, a->reason);
    } else {
        ask_status_text(ask, text, sizeof(text), a);
        outcome_describe(&ask->outcome, ask->url, text);
    }
    ask->credentials = credentials_free(ask->credentials);
    ask->ended(ask->probe, a);
}

static void ask_send(struct probe_ask *a)
{
    const struct probe_env *env = &a->probe->env;
    struct http_request rq = {.url = a->url,
                              .max_answer = a->max_answer,
                              .cut_answer = a->cut_answer,
                              .timeout_ms = env->settings->timeout_ms,
                              .public_only = env->settings->public_only};

    if (a->tls_only)
        rq.tls = a->credentials ? &a->credentials->tls : NULL;
    else
        credentials_apply(a->credentials, &rq);
    if (http_start(&a->http_call, env->http, &rq, ask_on_answer, a) == 0)
        return;
    a->credentials = credentials_free(a->credentials);
    outcome_fail(&a->outcome, PROBE_INVALID_URL, "the URL cannot be used");
    a->ended(a->probe, NULL);
}

static void ask_on_secret(void *arg, struct kube_answer *answer)
{
    struct probe_ask *a = arg;

    a->secret_call = NULL;
    if (answer->verdict == KUBE_OK) {
        a->credentials = token_of_secret(answer->object, a);
    } else {
        token_fail(a, answer->http_status == 404 ? "the Secret does not exist" : answer->why);
        /* Also one that has just returned, and refuses while it starts. */
        a->outcome.is_inconclusive = kube_absence_ms(a->probe->env.hub) < KUBE_GRACE_MS;
    }
    kube_wipe_strings(kube_map(answer->object, "data", NULL));
    if (a->credentials || (a->tls_only && !a->outcome.is_inconclusive))
        ask_send(a);
    else
        a->ended(a->probe, NULL);
}

static void ask_start(struct probe_ask *a)
{
    const struct probe *p = a->probe;
    const struct kube_request rq = {.method = KUBE_GET,
                                    .resource = &kube_secrets,
                                    .namespace = p->env.namespace,
                                    .name = a->token.name,
                                    .max_answer = MAX_SECRET_BYTES,
                                    .timeout_ms = p->env.settings->timeout_ms};

    a->outcome = (struct outcome){0};
    if (!p->health_url) {
        outcome_fail(&a->outcome, PROBE_INVALID_URL, "%s", p->url_error);
        a->ended(a->probe, NULL);
    } else if (a->token.name) {
        a->secret_call = kube_start(p->env.hub, &rq, ask_on_secret, a);
    } else {
        ask_send(a);
    }
}

static bool ask_in_flight(const struct probe_ask *a)
{
    return a->secret_call || a->http_call;
}

static void ask_cancel(struct probe_ask *a)
{
    a->http_call = http_cancel(a->http_call);
    a->secret_call = kube_cancel(a->secret_call);
    a->credentials = credentials_free(a->credentials);
}

/* ---- What an outcome means: the verdict on health, and whether a configuration is accepted ---- */

static void probe_keep(struct probe *p, enum probe_what what, const struct outcome *o)
{
    struct probe_part *part = what == PROBE_HEALTH ? &p->status.probe : &p->status.config;
    unsigned failures = o->part.ok ? 0 : part->failures + 1;

    *part = o->part;
    part->asked = true;
    part->failures = failures;
    part->at_ms = loop_wall(p->env.loop).ms;
    history_add(&p->status.history[what], 1, loop_wall(p->env.loop), &part->seconds);
}

static void probe_keep_health(struct probe *p, const struct outcome *o)
{
    const struct probe_settings *s = p->env.settings;
    enum probe_health *health = &p->status.health;

    probe_keep(p, PROBE_HEALTH, o);
    if (p->status.probe.failures < 2)
        p->status.failing_ms = o->part.ok ? 0 : p->status.probe.at_ms;
    p->successes = o->part.ok ? p->successes + 1 : 0;
    if (p->status.probe.failures >= s->unhealthy_after)
        *health = HEALTH_INACTIVE;
    else if (p->successes >= s->healthy_after ||
             (o->part.ok && (*health == HEALTH_UNKNOWN || p->is_provisional)))
        *health = HEALTH_ACTIVE;
    if (o->part.ok || p->status.probe.failures >= s->unhealthy_after)
        p->is_provisional = false;
    p->env.ended(p->env.arg, PROBE_HEALTH, &p->status.probe);
}

/* Sets health from the outcome of configURL, as there is no /healthz. */
static void probe_health_from_config(struct probe *p)
{
    struct outcome o = {.part = {.ok = true, .reason = PROBE_HEALTHY}};
    bool is_private = p->health.outcome.part.reason == PROBE_ACCESS_DENIED;
    CLEANUP(cleanup_free) char *text = NULL;
    char status[64];

    if (p->config.outcome.answered || (is_private && p->config.outcome.part.reason != PROBE_NOT_ASKED)) {
        o = p->config.outcome;
    } else {
        text_http_status(status, sizeof(status), p->no_healthz, "", STR(""));
        text = xasprintf("%s: %s, but the server responds", status,
                         is_private ? "access denied" : "no such path");
        outcome_describe(&o, p->health_url, text);
    }
    p->no_healthz = 0;
    if (!o.is_inconclusive)
        probe_keep_health(p, &o);
}

/* Accepts the configuration, unless agents would reject its summary: then the last good one stays. */
static void probe_accept_config(struct probe *p, const struct http_response *answer, struct outcome *o)
{
    CLEANUP(api_config_done) struct api_config new = {0};
    CLEANUP(effective_done) struct effective made = {.reason = EFFECTIVE_INCOMPLETE};
    struct str body = buf_str(&answer->body);
    int r = api_config_parse(&new, body, made.error);

    if (r == 0)
        effective_make(&made, p->env.name, &p->spec, &new);
    else if (r == -EBADMSG)
        text_show_body(made.error, sizeof(made.error), answer->content_type, body);
    o->part.ok = made.reason == EFFECTIVE_OK || made.only_spec_is_wrong;
    if (o->part.ok)
        o->part.reason = PROBE_SYNCED;
    else if (made.reason == EFFECTIVE_TOKEN_HOST)
        o->part.reason = PROBE_TOKEN_HOST_NOT_ALLOWED;
    else
        o->part.reason = PROBE_INVALID_CONFIG;
    if (!o->part.ok) {
        outcome_describe(o, p->spec.config_url, made.error);
        return;
    }
    p->status.is_synced_elsewhere = false;
    /* An equal one stays at its address, by which callers see that nothing changed. */
    if (p->status.synced.owner && json_equal(p->status.synced.owner, new.owner))
        return;
    api_config_done(&p->status.synced);
    p->status.synced = new;
    new = (struct api_config){0};
}

/* ---- When to ask ----
 *
 * A probe asks for health and configuration at once, or for the configuration alone. It ends with the last
 * answer; only then is the next one scheduled. */

static bool probe_wants_health(const struct probe *p)
{
    return p->spec.health_check == HEALTH_CHECK_HUB;
}

static void probe_in(struct probe *p, int64_t ms)
{
    kube_timer_move(p->env.loop, &p->timer, ms);
    p->status.next_ms = loop_wall(p->env.loop).ms + ms;
}

/* A steady pace once there is a verdict, so that thresholds are durations, too. Recovery need not wait. */
static int64_t health_pause(const struct probe *p)
{
    const struct probe_status *s = &p->status;
    int64_t interval = p->env.settings->interval_ms;

    if (!probe_wants_health(p))
        return interval;
    if (s->health != HEALTH_ACTIVE && (s->health == HEALTH_UNKNOWN || p->is_provisional) && !s->probe.ok)
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
    if (p->inconclusive || (config->asked && !config->ok)) {
        unsigned nth = p->inconclusive ? p->inconclusive : config->failures;

        other = probe_jitter(backoff_doubled_ms(nth, RETRY_MS, p->env.settings->interval_ms), permille);
        ms = other < ms ? other : ms;
    }
    probe_in(p, ms > 0 ? ms : 0);
}

/* Called last, whenever a request has ended. */
static void probe_settle(struct probe *p)
{
    if (p->starting)
        return;
    if (p->no_healthz && !ask_in_flight(&p->config))
        probe_health_from_config(p);
    if (!ask_in_flight(&p->health) && !ask_in_flight(&p->config))
        probe_schedule(p);
}

static void probe_on_health(struct probe *p, const struct http_response *answer)
{
    enum probe_reason reason = p->health.outcome.part.reason;

    if (reason == PROBE_ACCESS_DENIED || reason == PROBE_NO_SUCH_PATH) {
        p->no_healthz = answer->status;
        if (p->spec.mode == SYNC_NONE && p->spec.config_url)
            ask_start(&p->config);
    } else if (!p->health.outcome.is_inconclusive) {
        probe_keep_health(p, &p->health.outcome);
    }
    probe_settle(p);
}

static void probe_on_config(struct probe *p, const struct http_response *answer)
{
    struct outcome o = p->config.outcome; /* health does not depend on what the answer says */

    p->inconclusive = o.is_inconclusive ? p->inconclusive + 1 : 0;
    if (!o.is_inconclusive && p->spec.mode == SYNC_FULL) {
        if (o.part.ok)
            probe_accept_config(p, answer, &o);
        probe_keep(p, PROBE_CONFIG, &o);
        p->env.ended(p->env.arg, PROBE_CONFIG, &p->status.config);
    }
    probe_settle(p);
}

static void probe_on_timer(struct timer *t)
{
    struct probe *p = CONTAINER_OF(t, struct probe, timer);

    kube_timer_move(p->env.loop, t, KUBE_FAR_MS);
    p->status.next_ms = 0;
    if (!p->spec.own.owner || (!probe_wants_health(p) && p->spec.mode == SYNC_NONE))
        return;
    p->config.outcome = (struct outcome){0};
    p->health_due = p->health_at.ms <= loop_now(p->env.loop).ms;
    p->starting = true;
    if (p->spec.mode == SYNC_FULL)
        ask_start(&p->config);
    if (p->health_due && probe_wants_health(p))
        ask_start(&p->health);
    p->starting = false;
    probe_settle(p);
}

static void probe_cancel(struct probe *p)
{
    ask_cancel(&p->health);
    ask_cancel(&p->config);
    p->no_healthz = 0;
}

void probe_start(struct probe *p)
{
    if (p->running)
        return;
    p->running = true;
    p->health_at = loop_now(p->env.loop);
    probe_in(p, 0);
}

void probe_stop(struct probe *p)
{
    probe_cancel(p);
    loop_timer_clear(p->env.loop, &p->timer);
    p->running = false;
    p->status.next_ms = 0;
}

/* ---- A scorer's probe ---- */

struct probe *probe_new(const struct probe_env *env)
{
    struct probe *p = xcalloc(1, sizeof(*p));

    p->env = *env;
    p->timer.fn = probe_on_timer;
    p->health = (struct probe_ask){
        .probe = p, .max_answer = MAX_HEALTH_BYTES, .cut_answer = true, .ended = probe_on_health};
    p->config = (struct probe_ask){.probe = p, .ended = probe_on_config};
    return p;
}

struct probe *probe_free(struct probe *p)
{
    if (!p)
        return NULL;
    probe_stop(p);
    for (size_t i = 0; i < PROBE_PARTS; i++)
        p->status.history[i] = history_free(p->status.history[i]);
    api_config_done(&p->status.synced);
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
    p->status.is_synced_elsewhere = false;
    api_config_done(&p->status.synced);
    p->status.config = (struct probe_part){0};
}

void probe_resume(struct probe *p, enum probe_health health, struct api_config *synced, bool unread)
{
    p->status.health = probe_wants_health(p) ? health : HEALTH_UNKNOWN;
    p->status.probe = p->status.config = (struct probe_part){0};
    p->successes = 0;
    p->is_provisional = false;
    api_config_done(&p->status.synced);
    p->status.synced = *synced;
    p->status.is_synced_elsewhere = unread && synced->owner;
    *synced = (struct api_config){0};
    if (p->spec.own.owner && p->spec.mode == SYNC_NONE)
        probe_forget_config(p);
}

/* Where to ask, and with what. */
static void probe_prepare(struct probe *p)
{
    const struct scorer_spec *s = &p->spec;
    CLEANUP(cleanup_free) char *origin = url_origin(cstr(s->config_url ?: s->own.scoring.host));

    if (s->config_url)
        p->url_error = "spec.configURL: expected an http or https URL without a user";
    else if (s->own.scoring.host)
        p->url_error = "spec.scoring.host: expected an http or https URL without a user";
    else
        p->url_error = "neither spec.configURL nor spec.scoring.host is set";
    free(p->health_url);
    p->health_url = *origin ? xasprintf("%s/healthz", origin) : NULL;
    p->health.url = p->health_url;
    p->health.tls_only = s->config_url && strncmp(origin, "https:", 6) == 0;
    p->health.token = p->health.tls_only ? s->config_token : (struct token_ref){0};
    p->config.url = s->config_url;
    p->config.token = s->config_token;
    p->config.max_answer = s->mode == SYNC_FULL ? API_CONFIG_MAX_BYTES : MAX_HEALTH_BYTES;
    p->config.cut_answer = s->mode == SYNC_NONE;
}

void probe_set(struct probe *p, const struct scorer_spec *spec)
{
    CLEANUP(scorer_spec_done) struct scorer_spec before = p->spec;
    CLEANUP(cleanup_free) char *url_before = TAKE_PTR(p->health_url);
    bool is_hub = spec->health_check == HEALTH_CHECK_HUB;

    if (probe_wants_health(p) != is_hub) {
        /* A scorer that was distributed whatever its health stays so until the first verdict. */
        p->status.health = is_hub ? HEALTH_ACTIVE : HEALTH_UNKNOWN;
        p->status.probe = (struct probe_part){0};
        p->successes = 0;
        p->is_provisional = is_hub;
    }
    p->spec = *spec;
    (void)json_incref(p->spec.own.owner);
    probe_prepare(p);
    if (spec->mode == SYNC_NONE)
        probe_forget_config(p);
    /* Another API: health and configuration stay until it has a verdict. A mistyped URL costs no scores
     * sooner than an outage, and the right one ends a suspension with its first success. */
    if (before.own.owner && (strcmp(cstr(before.config_url), cstr(spec->config_url)) != 0 ||
                             strcmp(cstr(url_before), cstr(p->health_url)) != 0)) {
        p->status.failing_ms = 0;
        p->status.is_synced_elsewhere = p->status.synced.owner != NULL;
        p->status.probe = p->status.config = (struct probe_part){0};
        p->successes = 0;
        p->is_provisional = true;
    }
    probe_cancel(p);
    p->health_at = loop_now(p->env.loop);
    if (p->running)
        probe_in(p, 0);
}
