/* What one call of /scoring asks for, and with which key. */
#include "exporter/base/file.h"
#include "exporter/base/hash.h"
#include "exporter/base/secret.h"
#include "exporter/models/llm_internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { KEY_MAX = 16 << 10 };

/* The samples go to the round's own arrays: the last of them, at most as many as the prompt may have. */
static int items_add_samples(struct llm_round *r, const struct input_series *in, size_t *ret_n)
{
    size_t n = in->n < (size_t)r->llm->max_values ? in->n : (size_t)r->llm->max_values, from = in->n - n;

    if (r->n_samples + n > r->cap_samples) {
        size_t cap = 2 * (r->n_samples + n);
        double *times = reallocarray(r->times, cap, sizeof(*times)), *values;
        if (!times)
            return -ENOMEM;
        r->times = times;
        values = reallocarray(r->values, cap, sizeof(*values));
        if (!values)
            return -ENOMEM;
        r->values = values;
        r->cap_samples = cap;
    }
    if (n) {
        memcpy(r->times + r->n_samples, in->times + from, n * sizeof(*in->times));
        memcpy(r->values + r->n_samples, in->values + from, n * sizeof(*in->values));
    }
    r->n_samples += n;
    *ret_n = n;
    return 0;
}

/* A series has moved if its values have changed; the window moves on in any case. */
static uint64_t items_hash_values(const double *values, size_t n)
{
    return hash_bytes((struct str){(const char *)values, n * sizeof(*values)});
}

static bool items_has_value(const struct input_series *in)
{
    for (size_t i = 0; i < in->n; i++)
        if (isfinite(in->values[i]))
            return true;
    return false;
}

int llm_round_add(struct llm_round *r, const struct input_series *in)
{
    struct llm_item item = {.metric = in->metric, .first = r->n_samples};
    int e;

    if (!items_has_value(in)) {
        r->scoring->left_out[LEFT_OUT_NOT_FINITE]++;
        return 0;
    }
    if (r->n_items == LLM_MAX_SERIES) {
        r->scoring->left_out[LEFT_OUT_NO_ANSWER]++;
        return 0;
    }
    if ((r->n_items & (r->n_items - 1)) == 0) {
        struct llm_item *items = reallocarray(r->items, r->n_items ? 2 * r->n_items : 1, sizeof(*items));
        if (!items)
            return -ENOMEM;
        r->items = items;
    }
    e = items_add_samples(r, in, &item.n);
    if (e < 0)
        return e;
    item.series_hash = hash_bytes(item.metric);
    item.values_hash = items_hash_values(r->values + item.first, item.n);
    if (llm_cache_get(&r->llm->cache, item.series_hash, item.values_hash, &item.score)) {
        item.state = ITEM_DONE;
        llm_count(r->llm, "cached");
    }
    r->n_open += item.state == ITEM_NEW;
    r->items[r->n_items++] = item;
    return 0;
}

int llm_round_read_key(struct llm_round *r)
{
    const char *variable = getenv("OPENAI_API_KEY");
    SECRET_AUTO(file, KEY_MAX);
    struct str value = {0}, key = {0}, authorization = r->scoring->authorization;
    const char *wrong = NULL;
    int e = r->llm->api_key_file ? file_read(r->llm->api_key_file, &file) : 0;

    if (e < 0) {
        (void)snprintf(r->scoring->why, sizeof(r->scoring->why), "cannot read the API key from %s: %s",
                       r->llm->api_key_file, strerror(-e));
        return -EIO;
    }
    if (file.n)
        value = buf_str(&file);
    else if (variable && *variable)
        value = str_of(variable);
    else if (authorization.n > 7 && str_eq_nocase((struct str){authorization.p, 7}, STR("Bearer ")))
        value = (struct str){authorization.p + 7, authorization.n - 7};
    if (value.n)
        wrong = secret_token(value, &key);
    if (wrong) {
        (void)snprintf(r->scoring->why, sizeof(r->scoring->why), "invalid API key: %s", wrong);
        return -EIO;
    }
    secret_used(key);
    buf_init(&r->key, KEY_MAX);
    return buf_put_str(&r->key, key);
}
