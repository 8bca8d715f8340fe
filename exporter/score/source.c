/* The table of source types, and what is common to all sources. */
#include "exporter/score/source.h"

#include "exporter/score/summary.h"

#include <strings.h>

const char *const source_type_words[SOURCE_TYPES] = {
    [SOURCE_PROMETHEUS - 1] = "Prometheus",
    [SOURCE_NONE - 1] = "None",
};
static const struct source_ops *const source_types[SOURCE_TYPES] = {
    [SOURCE_PROMETHEUS] = &source_prometheus,
    [SOURCE_NONE] = &source_none,
};

const char *source_type_word(enum source_type type)
{
    return type == SOURCE_UNSET ? NULL : source_type_words[type - 1];
}

enum source_type source_type_of(const char *word)
{
    unsigned type = SOURCE_TYPES - 1;

    while (type > SOURCE_UNSET && (!word || strcasecmp(word, source_type_words[type - 1]) != 0))
        type--;
    return (enum source_type)type;
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
