/* What dynamic-scoring-cbc reads, and what the optimizer reads of its answers. */
#include "controller/optimize/problem.h"
#include "controller/optimize/wire.h"
#include "exporter/base/buf.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct problem p = {.n_workloads = 4, .n_sites = 2, .n_settings = 4};
    struct wire_problem w;
    struct wire_message m;
    void *copy = malloc(n + 1); /* aligned, and of that length */

    if (!copy)
        return 0;
    memcpy(copy, data, n);
    if (wire_get_problem(&w, copy, n) == 0) {
        struct buf out = {.max = 1 << 20};
        struct wire_problem again;

        if (problem_check(&w.p))
            abort();
        if (wire_put_problem(&out, &w) == 0) {
            if (wire_get_problem(&again, out.p, out.n) < 0)
                abort();
            wire_problem_done(&again);
        }
        buf_done(&out);
        wire_problem_done(&w);
    }
    if (wire_get_message(&m, &p, copy, n) > 0) {
        for (uint32_t i = 0; i < m.n_choices; i++)
            if (m.choices[i].workload >= p.n_workloads || m.choices[i].setting >= p.n_settings)
                abort();
    }
    free(copy);
    return 0;
}
