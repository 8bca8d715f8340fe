/* The number in what a language model says; for its test. */
#ifndef DS_MODELS_LLM_H
#define DS_MODELS_LLM_H

#include "exporter/base/str.h"

/* Finds the first number that stands alone: "0.83", "1,234.5", "-2e3", "**85%**", "value: 0.83". Not dates,
 * times, ordinals of a list ("1. "), or digits within words. False if there is none, or it is not finite. */
bool llm_find_number(struct str text, double *ret);

#endif
