/* The agent's configuration: a file (YAML or JSON; an object, or a bare array of summaries as the ConfigMap
 * holds it), and flags that win over it. */
#ifndef DS_AGENT_CONFIG_H
#define DS_AGENT_CONFIG_H

#include "exporter/base/log.h"
#include "exporter/score/summary.h"

/* Ceilings. Defaults in config_defaults(); the key of each under `limits:` is in its comment. */
struct limits {
    uint64_t response_bytes;   /* responseBytes: of one answer, 256 MiB */
    int64_t series_per_scorer; /* seriesPerScorer: 100,000 */
    int64_t series;            /* series: in all, 1,000,000 */
    int64_t label_value_bytes; /* labelValueBytes: 256 */
    int64_t round_ms;          /* roundTime: of one round, 5m */
    int64_t
        stale_intervals; /* staleAfterIntervals: scores of a failing scorer go after so many intervals, 3 */
};

/* A part of the file that another layer reads: remoteWrite, for one. */
struct config_section {
    const char *key;
    /* Called when the key is there and not null. Notes what is wrong in p. *ret, when set, is handed to
     * `done` as the configuration goes, also after a failure. -ENOMEM. */
    int (*parse)(const struct node *node, struct problems *p, void **ret);
    void (*done)(void *);
};

enum { CONFIG_MAX_LISTEN = 16, CONFIG_MAX_SECTIONS = 4 };

struct config {
    char *cluster_name; /* "" when the file has none */
    char *listen[CONFIG_MAX_LISTEN + 1];
    size_t n_listen;
    char *secrets_dir;  /* NULL: none */
    char *storage_path; /* NULL: none */
    enum log_level log_level;
    enum log_format log_format;
    struct limits limits;
    struct summaries summaries;
    void *sections[CONFIG_MAX_SECTIONS];        /* in the order of the table given to config_parse() */
    const struct config_section *section_table; /* must outlive the configuration */
    size_t n_sections;
    int64_t loaded_at_ms; /* Unix time */
};

/* Reads `text` and makes a whole configuration with defaults filled in. Everything wrong goes to p, sorted.
 * 0 with *ret set when p has no errors; -EINVAL when it has; -ENOMEM. */
MUST_USE int config_parse(struct config **ret, struct str text, const struct config_section *sections,
                          size_t n_sections, struct problems *p);
/* The same for a file; a file that cannot be read, or is larger than 16 MiB, is a problem too. */
MUST_USE int config_load(struct config **ret, const char *path, const struct config_section *sections,
                         size_t n_sections, struct problems *p);
struct config *config_free(struct config *c);
DEFINE_CLEANUP(struct config, config_free)

#endif
