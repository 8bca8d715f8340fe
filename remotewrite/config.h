/* The `remoteWrite` section of the configuration: a list of endpoints with the keys of Prometheus. */
#pragma once

#include "exporter/agent/config.h"
#include "exporter/http/http.h"
#include "remotewrite/relabel.h"

/* Wire formats. */
enum rw_form { RW_FORM_V1, RW_FORM_VM, RW_FORM_V2, RW_FORMS };
/* The preferred one, with simpler ones to fall back to; RW_PROTOCOL_AUTO: the best that is supported. */
enum rw_protocol { RW_PROTOCOL_V1, RW_PROTOCOL_VM, RW_PROTOCOL_V2, RW_PROTOCOL_AUTO, RW_PROTOCOLS };
enum rw_full_policy { RW_DROP_OLDEST, RW_DROP_NEWEST };

/* "1.0", "vm", "2.0", "auto", of protocols and forms. */
extern const char *const rw_protocol_words[RW_PROTOCOLS];

enum { RW_MAX_ENDPOINTS = 32, RW_MAX_HEADERS = 64, RW_MAX_EXTERNAL_LABELS = 64 };

/* One endpoint. Immutable. */
struct rw_endpoint_config {
    unsigned refs;
    struct arena memory;  /* of the strings */
    uint64_t fingerprint; /* of the configuration text: equal if the endpoint need not be restarted */
    char *name;           /* also the folder of the spool */
    char *url;
    char *url_shown; /* without credentials and query */
    int64_t timeout_ms;
    char *headers[RW_MAX_HEADERS]; /* "name: value", without those that the protocol sets */
    size_t n_headers;
    char *user, *password, *password_file;
    char *auth_type, *credentials, *credentials_file;
    struct http_tls tls;
    char *proxy_url;
    struct http_oauth2 oauth2; /* without the secret; token_url is NULL for another way, or none */
    struct http_tls oauth2_tls;
    char *client_secret, *client_secret_file;
    enum rw_protocol protocol;
    int64_t max_samples_per_send;
    int64_t min_backoff_ms, max_backoff_ms;
    int64_t sample_age_limit_ms; /* 0: none */
    uint64_t max_spool_bytes;
    bool max_spool_given;
    enum rw_full_policy full_policy;
    struct label external_labels[RW_MAX_EXTERNAL_LABELS];
    size_t n_external_labels;
    bool send_health_metrics;
    bool metadata_send;
    int64_t metadata_interval_ms;
    struct relabel_rules relabel;
};

struct rw_config {
    struct rw_endpoint_config *list[RW_MAX_ENDPOINTS];
    size_t n;
};

/* A section for agent_options and config_load(); its result is a struct rw_config. */
extern const struct config_section rw_config_section;

/* Whether both are the same destination: name, URL, headers (one may name a tenant), and user (who may be
 * one). Then what is queued for one may be sent with the other's configuration. */
bool rw_endpoint_config_same_place(const struct rw_endpoint_config *a, const struct rw_endpoint_config *b);

struct rw_endpoint_config *rw_endpoint_config_ref(struct rw_endpoint_config *c);
struct rw_endpoint_config *rw_endpoint_config_unref(struct rw_endpoint_config *c);
