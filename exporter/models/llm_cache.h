/* Answers of the language model that are still good: the last one for each series, and what it was about. */
#ifndef DS_MODELS_LLM_CACHE_H
#define DS_MODELS_LLM_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct llm_answer {
    uint64_t series, values; /* hashes of the labels and of the values */
    double score;
    bool is_set;
};

/* Zeroed before its first use. */
struct llm_cache {
    struct llm_answer *answers;
    size_t cap; /* a power of two; 0 at first */
};

/* Makes room for so many series. Without memory, and beyond 131,072 series, fewer answers are kept. */
void llm_cache_reserve(struct llm_cache *c, size_t n_series);
bool llm_cache_get(const struct llm_cache *c, uint64_t series, uint64_t values, double *ret);
/* Takes the place of another series' answer if both fall on the same slot. */
void llm_cache_put(struct llm_cache *c, uint64_t series, uint64_t values, double score);
void llm_cache_done(struct llm_cache *c);

#endif
