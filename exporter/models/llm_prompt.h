/* The prompt for one series, from a template with placeholders:
 *
 *     ${values}            a line "timestamp : value" for each sample, oldest first
 *     ${labels}            the series' labels, JSON
 *     ${app_name}          the label `pod`, else `namespace`, else "unknown"
 *     ${timeseries_kind}   a word for what is measured
 *     ${tendency}          a text about how the values tend to move
 */
#ifndef DS_MODELS_LLM_PROMPT_H
#define DS_MODELS_LLM_PROMPT_H

#include "exporter/base/buf.h"

extern const char llm_default_template[];

struct llm_template {
    const char *text;
    const char *timeseries_kind, *tendency;
};

struct llm_series {
    struct str labels; /* a JSON object */
    const double *times, *values;
    size_t n;
};

/* NULL if the template is valid, else what is wrong (from malloc; NULL when out of memory, too). -EINVAL with
 * *ret_why, -ENOMEM. */
MUST_USE int llm_template_check(const char *text, char **ret_why);
/* Appends the prompt. Samples that are not finite are left out. -ENOMEM, -EFBIG. */
MUST_USE int llm_put_prompt(struct buf *into, const struct llm_template *t, const struct llm_series *s);

#endif
