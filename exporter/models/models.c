#include "exporter/models/model.h"

#include <string.h>

const struct model *const models[] = {&model_mean,  &model_forecast, &model_llm,
                                      &model_power, &model_static,   NULL};

const struct model *model_find(const char *name)
{
    for (const struct model *const *m = models; *m; m++)
        if (strcmp((*m)->name, name) == 0)
            return *m;
    return NULL;
}

WORD_TABLE(left_out_word, enum left_out, LEFT_OUTS,
           {[LEFT_OUT_SHORT] = "short",
            [LEFT_OUT_GAPPY] = "gappy",
            [LEFT_OUT_ENDED] = "ended",
            [LEFT_OUT_DISORDERED] = "disordered",
            [LEFT_OUT_NOT_FINITE] = "not_finite",
            [LEFT_OUT_LABEL] = "label",
            [LEFT_OUT_NO_ANSWER] = "no_answer",
            [LEFT_OUT_NO_NUMBER] = "no_number"});
