/* What the model `llm` makes of a language model's answer. Pure; any thread. */
#pragma once

#include "exporter/base/str.h"
#include "exporter/http/cause.h"

/* Finds the first number that stands alone: "1,234.5", "-2e3", "**85%**", "value: 0.83". Not dates, times,
 * ordinals of a list ("1. "), or digits within words. False if there is none, or it is not finite. */
bool llm_find_number(struct str text, double *ret);

/* What a language model's response, or its absence, means for the question and for the others. */
enum llm_verdict { LLM_ANSWER, LLM_RETRY, LLM_GIVE_UP, LLM_GIVE_UP_ALL };
enum llm_verdict llm_judge(long status, enum http_error error);
