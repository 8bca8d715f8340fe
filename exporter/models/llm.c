/* A language model's forecast: asks an OpenAI-compatible endpoint for the next value of each series. */
#include "exporter/base/file.h"
#include "exporter/metric/version.h"
#include "exporter/models/llm_internal.h"

#include <errno.h>
#include <stdio.h>

enum { TEMPLATE_MAX = 256 << 10 };

static const struct model_endpoint llm_endpoint = {
    .prefix = "",
    .name = "llm-forecast-scorer",
    .description = "A sample score for time series data with vLLM",
    MODEL_CPU_SOURCE,
    .range = 3600,
    .step = 60,
    .score_name = "llm_forecast_score",
    .interval = 60,
};

static const struct setting llm_settings[] = {
    {.name = "inference-endpoint",
     .value = "URL",
     .help = "Completions or chat completions of an OpenAI-compatible server",
     .kind = SETTING_URL,
     .field = offsetof(struct llm, endpoint),
     .otherwise = "http://localhost:8000/v1/completions",
     .variable = "VLLM_ENDPOINT"},
    {.name = "model-name",
     .value = "NAME",
     .help = "Name of the model",
     .kind = SETTING_TEXT,
     .field = offsetof(struct llm, name),
     .otherwise = "Qwen/Qwen2.5-14B-Instruct"},
    {.name = "prompt-template-file",
     .value = "FILE",
     .help = "File with the prompt; ${values}, ${labels}, ${app_name}, ${timeseries_kind} and ${tendency} "
             "are replaced",
     .kind = SETTING_TEXT,
     .field = offsetof(struct llm, template_file)},
    {.name = "tendency-file",
     .value = "FILE",
     .help = "File with the text for ${tendency}",
     .kind = SETTING_TEXT,
     .field = offsetof(struct llm, tendency_file)},
    {.name = "timeseries-kind",
     .value = "WORD",
     .help = "Text for ${timeseries_kind}",
     .kind = SETTING_TEXT,
     .field = offsetof(struct llm, timeseries_kind),
     .otherwise = "APP_CPU_LOAD"},
    {.name = "api-key-file",
     .value = "FILE",
     .help = "File with a key for the endpoint, instead of the caller's token; the variable OPENAI_API_KEY "
             "holds one "
             "itself",
     .kind = SETTING_TEXT,
     .field = offsetof(struct llm, api_key_file)},
    {.name = "temperature",
     .value = "N",
     .help = "Temperature of the model; 0 asks for the likeliest answer",
     .kind = SETTING_NUMBER,
     .field = offsetof(struct llm, temperature),
     .otherwise = "0",
     .max = 2},
    {.name = "max-tokens",
     .value = "N",
     .help = "Tokens of an answer at most",
     .kind = SETTING_COUNT,
     .field = offsetof(struct llm, max_tokens),
     .otherwise = "64",
     .min = 1,
     .max = 100000},
    {.name = "max-values",
     .value = "N",
     .help = "Samples of a series in the prompt at most, the last ones",
     .kind = SETTING_COUNT,
     .field = offsetof(struct llm, max_values),
     .otherwise = "120",
     .min = 1,
     .max = 11000},
    {.name = "concurrency",
     .value = "N",
     .help = "Questions at the same time at most",
     .kind = SETTING_COUNT,
     .field = offsetof(struct llm, concurrency),
     .otherwise = "8",
     .min = 1,
     .max = 256},
    {.name = "scoring-timeout",
     .value = "DURATION",
     .help = "Deadline of a call; shorter than the agents' timeout, which is the interval",
     .kind = SETTING_DURATION,
     .field = offsetof(struct llm, timeout_ms),
     .otherwise = "50s",
     .min = 0.1,
     .max = 3600},
    {0},
};

static int llm_explain(char **ret_why, const char *file, const char *why)
{
    if (asprintf(ret_why, "%s: %s", file, why) < 0)
        *ret_why = NULL;
    return *ret_why ? -EINVAL : -ENOMEM;
}

/* The file, or the text, terminated. */
static int llm_read_text(struct buf *into, const char *file, const char *otherwise, char **ret_why)
{
    int r;

    buf_init(into, TEMPLATE_MAX);
    r = file ? file_read(file, into) : buf_puts(into, otherwise);
    r = r ?: buf_putc(into, '\0');
    if (r == 0 && strlen(into->p) + 1 != into->n)
        return llm_explain(ret_why, file, "it has a NUL byte");
    return r == 0 || r == -ENOMEM ? r : llm_explain(ret_why, cstr(file), strerror(-r));
}

static int llm_read_files(struct llm *m, char **ret_why)
{
    char *why = NULL;
    int r = llm_read_text(&m->template, m->template_file, llm_default_template, ret_why)
                ?: llm_read_text(&m->tendency, m->tendency_file, "", ret_why);

    r = r ?: llm_template_check(m->template.p, &why);
    if (r == -EINVAL && why)
        r = llm_explain(ret_why, m->template_file, why);
    free(why);
    return r;
}

static void llm_close(void *state)
{
    struct llm *m = state;

    while (!TAILQ_EMPTY(&m->rounds))
        llm_round_end(TAILQ_FIRST(&m->rounds));
    m->http = http_free(m->http);
    llm_cache_done(&m->cache);
    buf_done(&m->template);
    buf_done(&m->tendency);
}

static int llm_open(void *state, const struct model_env *env, char **ret_why)
{
    struct llm *m = state;
    BUF_AUTO(agent, 100);
    int r;

    TAILQ_INIT(&m->rounds);
    m->loop = env->loop;
    m->metrics = env->metrics;
    r = llm_read_files(m, ret_why);
    r = r ?: buf_printf(&agent, "dynamic-scoring/%s", ds_version) ?: buf_putc(&agent, '\0');
    return r ?: http_new(&m->http, m->loop, agent.p);
}

static void llm_begin(void *state, struct scoring *s)
{
    struct llm *m = state;
    int r = -EIO;

    if (m->n_rounds < LLM_MAX_ROUNDS)
        r = llm_round_start(m, s);
    else
        (void)snprintf(s->why, sizeof(s->why), "%d calls are being answered already", LLM_MAX_ROUNDS);
    if (r < 0)
        scoring_done(s, r);
}

const struct model model_llm = {
    .name = "llm",
    .help = "The next value of each series, as a language model says it.",
    .endpoints = &llm_endpoint,
    .n_endpoints = 1,
    .settings = llm_settings,
    .size = sizeof(struct llm),
    .open = llm_open,
    .close = llm_close,
    .begin = llm_begin,
};
