/* Why a request cannot be served: a status of HTTP, the argument that it is about, and a sentence for
 * people. */
#pragma once

#include "exporter/base/def.h"

struct objection {
    unsigned status;   /* of HTTP; 0: no objection */
    char field[192];   /* of the request: "clusters[1].name"; empty: none in particular */
    char detail[1024]; /* a sentence for people, one line */
};

/* Sets the field that objections from now on are about. */
void objection_at(struct objection *ob, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Returns -EINVAL. */
int objection_set(struct objection *ob, unsigned status, const char *fmt, ...) PRINTF_LIKE(3, 4);
