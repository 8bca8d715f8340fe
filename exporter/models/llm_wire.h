/* The OpenAI-compatible API of a language model: completions and chat completions. */
#ifndef DS_MODELS_LLM_WIRE_H
#define DS_MODELS_LLM_WIRE_H

#include "exporter/base/buf.h"

#include <stdbool.h>

enum { LLM_REASON_BYTES = 300 };

struct llm_settings {
    const char *model;
    double temperature;
    int max_tokens;
};

/* Whether the endpoint is that of chat completions, by its path; otherwise it is that of completions. */
bool llm_is_chat(const char *endpoint);
/* Appends the body of a request. -ENOMEM, -EFBIG. */
MUST_USE int llm_put_request(struct buf *into, const struct llm_settings *s, bool chat, struct str prompt);
/* Appends the text of the first choice: `text` of completions, `message.content` of chat completions. False,
 * with the reason, if there is none or the answer is not of that form. */
bool llm_read_answer(struct str body, struct buf *into, char why[LLM_REASON_BYTES]);

#endif
