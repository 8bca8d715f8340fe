/* Keeps a program's resident memory small while it has little to do. */
#ifndef DS_BASE_TRIMMER_H
#define DS_BASE_TRIMMER_H

#include "exporter/base/loop.h"

/* Embedded in its owner. */
struct trimmer {
    struct loop *loop;
    struct timer timer;
    bool unmapped;
};

/* Ten seconds after the start, and each minute from then on, returns freed memory to the system; the first
 * time also unmaps code and constants. -ENOMEM. */
void trimmer_start(struct trimmer *t, struct loop *loop);
void trimmer_stop(struct trimmer *t);

#endif
