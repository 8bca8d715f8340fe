/* Solves a placement problem: prices give a bound and drop what cannot be in a better solution; what is left
 * goes to CBC, as patterns if they are few enough. */
#ifndef DS_OPTIMIZE_CBC_PROGRAM_SEARCH_H
#define DS_OPTIMIZE_CBC_PROGRAM_SEARCH_H

#include "controller/optimize/wire.h"

/* Takes a bound or a better solution as soon as there is one. An error ends the search. */
typedef int search_send(void *arg, const struct wire_message *m);

/* -ENOMEM, -EFBIG, or what `send` returned. */
MUST_USE int search_run(const struct wire_problem *w, search_send *send, void *arg);

#endif
