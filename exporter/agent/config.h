/* The agent's configuration: YAML or JSON, an object or the bare list of a ConfigMap. Flags override it. */
#pragma once

#include "exporter/base/arena.h"
#include "exporter/base/buf.h"
#include "exporter/base/log.h"
#include "exporter/score/summary.h"

/* Ceilings: the key under `limits:`, what it limits, and its default. */
struct limits {
    uint64_t response_bytes;   /* responseBytes: one response; 256 MiB */
    uint64_t memory_bytes;     /* memory: all responses together; 0: see http_set_budget() */
    int64_t series_per_scorer; /* seriesPerScorer; 100,000 */
    int64_t series;            /* series: all scorers; 1,000,000 */
    int64_t label_value_bytes; /* labelValueBytes; 256 */
    int64_t round_ms;          /* roundTime: one round; 5m */
    uint64_t otlp_bytes;       /* otlpMemory: series received by OTLP; 0: see store_set_limits() */
    int64_t otlp_series;       /* otlpSeries: their number; 200,000 */
    int64_t stale_intervals;   /* staleAfterIntervals: the life of scores after the last good round; 3 */
};

extern const struct limits limits_default;

/* The section of the file that another layer reads: remoteWrite. */
struct config_section {
    const char *key;
    /* Called if the key is present and not null. Adds problems to p. *ret, if set, is passed to done() when
     * the configuration is freed, even after a failure. -ENOMEM. */
    int (*parse)(const struct node *node, struct problems *p, void **ret);
    void (*done)(void *);
};

enum { CONFIG_MAX_LISTEN = 16, CONFIG_MAX_BYTES = 16 << 20 };

struct config {
    struct arena arena;       /* of the file's own strings */
    const char *cluster_name; /* NULL if the file has none */
    const char *listen[CONFIG_MAX_LISTEN];
    size_t n_listen;
    const char *secrets_dir, *storage_path; /* NULL: none */
    enum log_level log_level;
    enum log_format log_format;
    struct limits limits;
    struct summaries summaries;
    void *section; /* NULL: none */
    const struct config_section *section_type;
    int64_t loaded_at_ms; /* Unix time */
};

/* Reads `text` into a configuration with defaults filled in, and every problem into p, sorted. -EINVAL if p
 * has errors. The section, NULL for none, must outlive the configuration. */
MUST_USE int config_parse(struct config **ret, struct str text, const struct config_section *section,
                          struct problems *p);
/* Appends a file to `into`, whose ceiling is CONFIG_MAX_BYTES. -EINVAL with a problem in p, -ENOMEM. A pipe,
 * such as the shell's <(...), is given 10 s to be written, and can be read only once. */
MUST_USE int config_read(const char *path, struct buf *into, bool *ret_pipe, struct problems *p);
struct config *config_free(struct config *c);
DEFINE_CLEANUP(struct config, config_free)
