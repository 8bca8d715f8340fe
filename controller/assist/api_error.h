/* Why a request cannot be served: a status of HTTP, the argument that it is about, and a sentence for
 * people. */
#pragma once

#include "exporter/base/def.h"

struct api_error {
    unsigned status;   /* of HTTP; 0: no error */
    char field[192];   /* of the request: "clusters[1].name"; empty: none in particular */
    char detail[1024]; /* a sentence for people, one line */
};

/* Sets the field that errors from now on are about. */
void api_error_at(struct api_error *error, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Returns -EINVAL. */
int api_error_set(struct api_error *error, unsigned status, const char *fmt, ...) PRINTF_LIKE(3, 4);
