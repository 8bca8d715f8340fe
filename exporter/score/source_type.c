/* The types of sources: the words that users write for them, and what their fields are. Owns nothing; any
 * thread. */
#include "exporter/score/summary.h"

#include <strings.h>

static const struct source_kind source_kinds[SOURCE_TYPES] = {
    [SOURCE_PROMETHEUS] = {"/api/v1/query_range", false, "a PromQL query"},
    [SOURCE_OPENTELEMETRY] = {"/api/v1/query_range", true, "a query in PromQL"},
};

const char *const source_type_words[] = {
    [SOURCE_PROMETHEUS - 1] = "Prometheus",
    [SOURCE_NONE - 1] = "None",
    [SOURCE_OPENTELEMETRY - 1] = "OpenTelemetry",
    "OTel",
    "OTLP",
    NULL,
};

const struct source_kind *source_kind(enum source_type type)
{
    return &source_kinds[type];
}

const char *source_type_word(enum source_type type)
{
    return type == SOURCE_UNSET ? NULL : source_type_words[type - 1];
}

enum source_type source_type_of(const char *word)
{
    for (unsigned i = 0; word && source_type_words[i]; i++)
        if (strcasecmp(word, source_type_words[i]) == 0)
            return i + 1 < SOURCE_TYPES ? (enum source_type)(i + 1) : SOURCE_OPENTELEMETRY;
    return SOURCE_UNSET;
}
