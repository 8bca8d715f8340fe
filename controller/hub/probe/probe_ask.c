/* The requests of a probe, and what their answers say. */
#include "controller/hub/probe/probe_internal.h"
#include "controller/hub/rules/effective.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <stdio.h>

enum { MAX_HEALTH_BYTES = 64 << 10, MAX_CONFIG_BYTES = 128 << 10 };

static const char *const reasons[HTTP_ERRORS] = {
    [HTTP_URL] = "InvalidURL",      [HTTP_DNS] = "DNS",
    [HTTP_CONNECT] = "Unreachable", [HTTP_TLS] = "TLS",
    [HTTP_TIMEOUT] = "Timeout",     [HTTP_TOO_LARGE] = "TooLarge",
    [HTTP_BROKEN] = "Broken",       [HTTP_MEMORY] = "OutOfMemory",
};

/* "<url>: <text>", one line, the URL without user, password and query, in which there may be a token. */
static void say(struct probe_result *r, const char *url, const char *text)
{
    char shown[256], all[1024];
    BUF_AUTO(people, 16 << 10);

    if (http_url_for_people((struct str){url, strcspn(url, "?#")}, &people) < 0)
        buf_done(&people);
    text_line(shown, sizeof(shown), people.n ? buf_str(&people) : STR("the API"));
    (void)snprintf(all, sizeof(all), "%s: %s", shown, text);
    text_line(r->message, sizeof(r->message), str_of(all));
}

static void fails(struct probe_result *r, const char *reason, const char *text)
{
    *r = (struct probe_result){.reason = reason};
    text_line(r->message, sizeof(r->message), str_of(text));
}

/* The members in which frameworks say what is wrong. */
static const char *error_of(const json_t *body)
{
    return kube_str(body, "detail", NULL) ?: kube_str(body, "error", NULL) ?: kube_str(body, "message", NULL);
}

/* "HTTP 500 Internal Server Error: model not loaded" */
static void status_words(char *out, size_t size, const struct http_answer *a)
{
    json_auto_t *body = NULL;
    const char *said = NULL;

    if (a->status / 100 != 2 && kube_json_parse(&body, buf_str(&a->body), NULL) == 0)
        said = error_of(body);
    text_http_status(out, size, a->status,
                     a->status / 100 == 2 ? STR("")
                     : said               ? str_of(said)
                                          : buf_str(&a->body));
}

/* What an answer says of health. */
static void judge(struct probe_result *r, const char *url, const struct http_answer *a)
{
    char words[512];

    *r = (struct probe_result){.seconds = a->seconds};
    if (a->error != HTTP_OK) {
        r->reason = a->refused ? "Forbidden" : reasons[a->error];
        say(r, url, a->reason);
        return;
    }
    r->ok = a->status / 100 == 2;
    r->reason = r->ok ? "Healthy" : "HTTPStatus";
    status_words(words, sizeof(words), a);
    say(r, url, words);
}

static struct http_request request(const struct probe *p, const char *url)
{
    return (struct http_request){
        .url = url, .timeout_ms = p->env.settings->timeout_ms, .public_only = p->env.settings->public_only};
}

/* ---- Health ---- */

/* There is none, or it is not for all, and the token is for configURL. */
static bool has_no_healthz(const struct http_answer *a)
{
    static const long none[] = {401, 403, 404, 405, 501};

    for (size_t i = 0; a->error == HTTP_OK && i < ARRAY_SIZE(none); i++)
        if (a->status == none[i])
            return true;
    return false;
}

static void on_health(void *arg, struct http_answer *a)
{
    struct probe *p = arg;
    struct probe_result r;

    p->health_call = NULL;
    if (has_no_healthz(a)) {
        p->no_healthz = a->status;
        if (p->spec.mode == SYNC_NONE && p->spec.config_url)
            probe_ask_config(p);
    } else {
        judge(&r, p->health_url, a);
        probe_health_ended(p, &r);
    }
    probe_settle(p);
}

void probe_ask_health(struct probe *p)
{
    struct http_request rq = request(p, p->health_url);
    struct probe_result result;
    int r;

    rq.max_answer = MAX_HEALTH_BYTES;
    rq.cut_answer = true;
    r = p->health_url ? http_start(&p->health_call, p->env.http, &rq, on_health, p) : -EINVAL;
    if (r == 0)
        return;
    if (r == -ENOMEM)
        fails(&result, "OutOfMemory", "out of memory");
    else
        fails(&result, "InvalidURL", p->health_url ? "the URL cannot be used" : p->no_url);
    probe_health_ended(p, &result);
}

void probe_health_by_config(struct probe *p)
{
    struct probe_result r = {.ok = true, .reason = "Healthy"};
    bool not_for_all = p->no_healthz == 401 || p->no_healthz == 403;
    char words[64], text[128];

    if (p->answered || (not_for_all && p->answer.reason)) {
        r = p->answer;
    } else {
        text_http_status(words, sizeof(words), p->no_healthz, STR(""));
        (void)snprintf(text, sizeof(text), "%s: %s, but the server answers", words,
                       not_for_all ? "it is not for all" : "there is no such path");
        say(&r, p->health_url, text);
    }
    p->no_healthz = 0;
    probe_health_ended(p, &r);
}

/* ---- Configuration ---- */

/* Reads what the API says; NULL, or the reason why it is not taken over. */
static const char *read_config(const struct probe *p, struct str body, struct api_config *got,
                               char why[SPEC_WHY_BYTES])
{
    CLEANUP(effective_done) struct effective made = {0};
    int r = api_config_parse(got, body, why);

    if (r == -EINVAL)
        return "InvalidConfig";
    r = r ?: effective_make(&made, p->env.name, &p->spec, got);
    if (r < 0) {
        (void)snprintf(why, SPEC_WHY_BYTES, "out of memory");
        return "OutOfMemory";
    }
    memcpy(why, made.why, sizeof(made.why));
    return made.reason == EFFECTIVE_OK || made.only_spec_is_wrong ? NULL
           : made.reason == EFFECTIVE_TOKEN_HOST       ? "TokenHostNotAllowed"
                                                       : "InvalidConfig";
}

/* Takes over what the API says, or leaves the last good one: what no agent would take must not end what is in force. */
static void take_config(struct probe *p, const struct http_answer *a, struct probe_result *r)
{
    CLEANUP(api_config_done) struct api_config got = {0};
    char why[SPEC_WHY_BYTES];
    const char *refused = read_config(p, buf_str(&a->body), &got, why);

    r->ok = !refused;
    r->reason = refused ?: "Synced";
    if (refused) {
        say(r, p->spec.config_url, why);
        return;
    }
    /* The same is left in place: what is there tells by its address that it is not new. */
    if (p->status.synced.owner && json_equal(p->status.synced.owner, got.owner))
        return;
    api_config_done(&p->status.synced);
    p->status.synced = got;
    got = (struct api_config){0};
}

static void on_config(void *arg, struct http_answer *a)
{
    struct probe *p = arg;
    struct probe_result r;

    p->config_call = NULL;
    judge(&r, p->spec.config_url, a);
    p->answer = r;
    p->answered = true;
    if (p->spec.mode == SYNC_FULL) {
        if (r.ok)
            take_config(p, a, &r);
        probe_config_ended(p, &r);
    }
    probe_settle(p);
}

void probe_config_fails(struct probe *p, const char *reason, const char *text)
{
    struct probe_result r;

    fails(&r, reason, text);
    p->answer = r;
    if (p->spec.mode == SYNC_FULL)
        probe_config_ended(p, &r);
}

void probe_get_config(struct probe *p, struct str token)
{
    struct http_request rq = request(p, p->spec.config_url);
    int r;

    rq.bearer = token;
    rq.max_answer = p->spec.mode == SYNC_FULL ? MAX_CONFIG_BYTES : MAX_HEALTH_BYTES;
    rq.cut_answer = p->spec.mode == SYNC_NONE;
    r = http_start(&p->config_call, p->env.http, &rq, on_config, p);
    if (r == -ENOMEM)
        probe_config_fails(p, "OutOfMemory", "out of memory");
    else if (r < 0)
        probe_config_fails(p, "InvalidURL", "spec.configURL: the URL cannot be used");
}

void probe_ask_config(struct probe *p)
{
    if (!p->spec.config_url)
        probe_config_fails(p, "InvalidURL", "spec.configURL: needed when spec.configSyncMode is Full");
    else if (!p->health_url)
        probe_config_fails(p, "InvalidURL", p->no_url);
    else if (p->spec.config_token.name)
        probe_ask_token(p);
    else
        probe_get_config(p, STR(""));
}

bool probe_asks_config(const struct probe *p)
{
    return p->secret_call || p->config_call;
}

void probe_cancel(struct probe *p)
{
    p->health_call = http_cancel(p->health_call);
    p->config_call = http_cancel(p->config_call);
    p->secret_call = kube_cancel(p->secret_call);
    p->no_healthz = 0;
}
