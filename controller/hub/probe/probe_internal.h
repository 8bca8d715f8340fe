/* What the files of the probe share; nothing else includes it. */
#ifndef DS_HUB_PROBE_INTERNAL_H
#define DS_HUB_PROBE_INTERNAL_H

#include "controller/hub/probe/probe.h"
#include "exporter/base/clock.h"
#include "exporter/base/http.h"
#include "exporter/base/loop.h"

enum { PROBE_PARTS = 2 };

/* What became of one attempt. */
struct probe_result {
    bool ok;
    const char *reason; /* a literal */
    double seconds;
    char message[768];
};

struct probe {
    struct probe_env env;
    struct probe_callbacks cb;
    struct scorer_spec spec;
    bool has_spec;
    char *health_url;   /* NULL: there is none */
    const char *no_url; /* then: why */
    struct probe_status status;
    unsigned successes; /* of health, in a row */
    bool unjudged;      /* health is that of another API */
    bool running;
    struct timer timer; /* the next probe; far ahead while one is under way, since moving it cannot fail */
    mono_ms health_at;  /* when health is to be asked; what comes before asks for the configuration alone */
    /* The probe under way, if any. */
    bool health_due; /* it asks for health, too */
    struct http_call *health_call, *config_call;
    struct kube_call *secret_call;
    long
        no_healthz; /* the answer that said so: health waits for what configURL answers; 0: it does not wait */
    bool answered;  /* configURL has, or could not be reached */
    struct probe_result answer; /* then, or when it could not be asked: what that says of health */
    bool ended[PROBE_PARTS];    /* not told yet */
    bool telling, dead;         /* a callback runs; it freed the probe */
};

/* ---- probe.c ---- */

/* An attempt at a part has ended. probe_settle() tells. */
void probe_health_ended(struct probe *p, const struct probe_result *r);
void probe_config_ended(struct probe *p, const struct probe_result *r);
/* To be called last, whenever something has ended: sees to what comes next and calls back. The probe may be gone afterwards. */
void probe_settle(struct probe *p);

/* ---- probe_ask.c ---- */

void probe_ask_health(struct probe *p);
/* GET configURL, with its token: for the configuration in Full mode, else for health alone. */
void probe_ask_config(struct probe *p);
void probe_get_config(struct probe *p, struct str token);
bool probe_asks_config(const struct probe *p);
/* There was no request to configURL: what `reason` and `text` say. */
void probe_config_fails(struct probe *p, const char *reason, const char *text);
/* Health as the outcome of configURL says. */
void probe_health_by_config(struct probe *p);
void probe_cancel(struct probe *p);

/* ---- probe_token.c ---- */

/* Reads the Secret and goes on to probe_get_config() or probe_config_fails(). */
void probe_ask_token(struct probe *p);

#endif
