/* The table of source types, and what is common to all sources. */
#include "exporter/score/source.h"

#include "exporter/score/summary.h"

#include <strings.h>

const char *const source_type_words[] = {
    [SOURCE_PROMETHEUS - 1] = "Prometheus",
    [SOURCE_NONE - 1] = "None",
    [SOURCE_OPENTELEMETRY - 1] = "OpenTelemetry",
    "OTel",
    "OTLP",
    NULL,
};
static const struct source_ops *const source_types[SOURCE_TYPES] = {
    [SOURCE_PROMETHEUS] = &source_prometheus,
    [SOURCE_NONE] = &source_none,
    [SOURCE_OPENTELEMETRY] = &source_otlp,
};

enum source_type source_type_at(unsigned word)
{
    return word + 1 < SOURCE_TYPES ? (enum source_type)(word + 1) : SOURCE_OPENTELEMETRY;
}

const char *source_type_word(enum source_type type)
{
    return type == SOURCE_UNSET ? NULL : source_type_words[type - 1];
}

enum source_type source_type_of(const char *word)
{
    for (unsigned i = 0; word && source_type_words[i]; i++)
        if (strcasecmp(word, source_type_words[i]) == 0)
            return source_type_at(i);
    return SOURCE_UNSET;
}

const struct source_ops *source_of_type(enum source_type type)
{
    return source_types[type];
}

const struct source_ops *source_for(const struct summary *s)
{
    return summary_sources(s) > 1 ? &source_several : source_of_type(s->source.type);
}

struct source *source_free(struct source *s)
{
    return s ? s->ops->free(s) : NULL;
}
