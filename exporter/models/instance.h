/* An instance: a model with its settings, from flags, the environment and a file. Loop thread, but for the
 * model's score(). */
#pragma once

#include "exporter/base/arena.h"
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/models/model.h"
#include "exporter/models/setting.h"

/* A setting of the model, or of what one of its endpoints says in /config. */
struct instance_setting {
    const struct setting *setting;
    char name[64];      /* of the flag: "min-length", "performance.score-name" */
    char variable[64];  /* "MIN_LENGTH", "PERFORMANCE_SCORE_NAME" */
    char key[64];       /* in the configuration file: "minLength", "performanceScoreName" */
    char expected[128]; /* "a whole number from 1 to 100" */
    void *field;
    const char *flag; /* the flag's value; NULL if it was not given */
};

struct instance {
    const struct model *model;
    struct model_endpoint *endpoints; /* with the settings */
    void *state;                      /* the model's */
    struct instance_setting *settings;
    size_t n_settings;
    struct arena arena; /* of the texts */
};

/* With the defaults. */
struct instance *instance_new(const struct model *m);
/* Closes the model. Takes NULL, returns NULL. */
struct instance *instance_free(struct instance *i);
DEFINE_CLEANUP(struct instance, instance_free)

/* Whether the text is a valid value. */
bool instance_accepts(const struct instance_setting *s, const char *text);
/* Applies the configuration file (NULL: none), the environment and the flags. Problems of the file are added
 * to `file`, others to `others`; -EINVAL if there are any. */
MUST_USE int instance_configure(struct instance *i, const char *path, struct problems *file,
                                struct problems *others);

/* Ends all calls that wait for an answer. */
void instance_close(struct instance *i);
/* Appends what GET /config of an endpoint answers. */
void instance_put_config(const struct instance *i, size_t endpoint, struct buf *into);
