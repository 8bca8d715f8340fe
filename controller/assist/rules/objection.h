/* Why a request cannot be served. */
#ifndef DS_ASSIST_RULES_OBJECTION_H
#define DS_ASSIST_RULES_OBJECTION_H

#include "exporter/base/def.h"

struct objection {
    unsigned status;  /* of HTTP; 0: no objection */
    char field[192];  /* of the request: "clusters[1].name"; empty: none in particular */
    char detail[768]; /* a sentence for people, one line */
};

/* Sets the objection unless there is one. Returns -EINVAL. */
int objection_set(struct objection *ob, unsigned status, const char *field, const char *fmt, ...)
    PRINTF_LIKE(4, 5);

#endif
