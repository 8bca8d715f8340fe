/* What the optimiser and the program dynamic-scoring-cbc send each other, over pipes.
 *
 * To the program goes one problem: a header with the sizes, then arrays in the machine's own byte order. Only
 * combinations of workload and setting that are possible are in it, so the optimiser leaves out what it has
 * proven useless. Back come messages: bounds, solutions that improve on all before, and an end. Both sides
 * check every size and index of what they read. */
#ifndef DS_OPTIMIZE_WIRE_H
#define DS_OPTIMIZE_WIRE_H

#include "controller/optimize/problem.h"
#include "exporter/base/buf.h"
#include "exporter/base/def.h"

/* A replica of the workload runs with this setting of the setting's site. */
struct wire_choice {
    uint32_t workload, setting;
};

struct wire_problem {
    struct problem p;
    const struct wire_choice *start; /* a solution; ascending by workload, then setting */
    size_t n_start;
    bool has_start;   /* no choices are a solution, too */
    int64_t bound;    /* proven: no solution is better */
    int64_t limit_ms; /* end by then */
    void *memory;     /* holds the arrays */
};

enum {
    WIRE_COUNT_MAX = 1 << 22,   /* of anything */
    WIRE_SCORES_MAX = 16 << 20, /* workloads x settings */
    WIRE_BYTES_MAX = 256 << 20, /* of a problem */
};

/* Appends the problem: of its scores those that are not SCORE_IMPOSSIBLE. -EFBIG, -ENOMEM. */
MUST_USE int wire_put_problem(struct buf *out, const struct wire_problem *w);
/* -EBADMSG for anything but a whole, well-formed problem; -ENOMEM. wire_problem_done() frees it. */
MUST_USE int wire_get_problem(struct wire_problem *ret, const void *bytes, size_t n);
void wire_problem_done(struct wire_problem *w);

enum wire_kind {
    WIRE_BOUND = 1, /* value: no solution of the problem sent is better */
    WIRE_SOLUTION,  /* value: its objective; choices follow */
    WIRE_END,       /* value: whether the search was complete */
};

struct wire_message {
    uint32_t kind; /* enum wire_kind */
    uint32_t n_choices;
    int64_t value;
    const struct wire_choice *choices; /* in the bytes read */
};

/* -EFBIG, -ENOMEM. */
MUST_USE int wire_put_message(struct buf *out, const struct wire_message *m);
/* The number of bytes that the first message takes, 0 if it is not complete yet, -EBADMSG. Choices name
 * workloads and settings of p. */
MUST_USE int64_t wire_get_message(struct wire_message *ret, const struct problem *p, const void *bytes,
                                  size_t n);

#endif
