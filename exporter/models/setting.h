/* A setting of a model, as data: what it is called, where its value goes, and which values are valid. */
#pragma once

#include <stddef.h>

enum setting_kind {
    SETTING_TEXT,     /* const char *: not empty; owned by the settings */
    SETTING_TABLE,    /* the same; in the file it may be a list, which read_file() reads */
    SETTING_URL,      /* the same, with http:// or https:// and a host */
    SETTING_NUMBER,   /* double, from min to max */
    SETTING_COUNT,    /* int64_t, from min to max */
    SETTING_DURATION, /* int64_t: milliseconds; min and max in seconds */
    SETTING_SECONDS,  /* int64_t: whole seconds, from min to max */
};

/* Set by the flag --min-length, else the environment variable MIN_LENGTH, else minLength in the file. */
struct setting {
    const char *name;  /* "min-length" */
    const char *value; /* what the help calls it: "N" */
    const char *help;
    enum setting_kind kind;
    size_t field;          /* its offset in the model's state */
    const char *otherwise; /* the value without any of them; NULL: the field stays zeroed */
    const char *variable;  /* one more environment variable, which users have: "VLLM_ENDPOINT"; or NULL */
    double min, max;       /* both 0: no bounds */
};
