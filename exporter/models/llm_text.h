/* What the model `llm` writes to a language model, and what it reads in the answer: the OpenAI-compatible API
 * of completions and chat completions. A prompt is a template with placeholders:
 *
 *     ${values}            a line "timestamp : value" for each sample, oldest first
 *     ${labels}            the series' labels, JSON
 *     ${app_name}          the label `pod`, else `namespace`, else "unknown"
 *     ${timeseries_kind}   a word for what is measured
 *     ${tendency}          a text about how the values tend to move
 */
#ifndef DS_MODELS_LLM_TEXT_H
#define DS_MODELS_LLM_TEXT_H

#include "exporter/base/buf.h"
#include "exporter/models/wire.h"

enum { LLM_REASON_BYTES = 300 };

extern const char llm_default_template[];

struct llm_prompt {
    const char *template;
    const char *timeseries_kind, *tendency;
};

enum llm_answer { LLM_NUMBER, LLM_NO_NUMBER, LLM_INVALID };

/* -EINVAL with what is wrong in *ret_why (from malloc), -ENOMEM. */
MUST_USE int llm_template_check(const char *template, char **ret_why);
/* Appends the prompt. Samples that are not finite are left out. -ENOMEM, -EFBIG. */
MUST_USE int llm_put_prompt(struct buf *into, const struct llm_prompt *p, const struct input_series *s);
/* Whether the endpoint's path is that of chat completions; otherwise it is that of completions. */
bool llm_is_chat(const char *endpoint);
/* Appends the body of a request. -ENOMEM, -EFBIG. */
MUST_USE int llm_put_request(struct buf *into, bool chat, const char *model, double temperature,
                             int64_t max_tokens, struct str prompt);
/* Reads the number in the text of the first choice, else says why there is none. */
enum llm_answer llm_read_answer(struct str body, double *ret, char why[LLM_REASON_BYTES]);
/* Finds the first number that stands alone: "0.83", "1,234.5", "-2e3", "**85%**", "value: 0.83". Not dates,
 * times, ordinals of a list ("1. "), or digits within words. False if there is none, or it is not finite. */
bool llm_find_number(struct str text, double *ret);

#endif
