/* Placement problems of a given size, from a seed: always the same for the same arguments.
 *
 * Requests are whole units. What all sites supply together is about what all workloads request, so that
 * good sites are contended, but for LOOSE. Kinds:
 *
 * - LOOSE: requests of 1 to 8 units, one or more settings a site; all sites supply 1.2 times what all
 *   workloads request: with ten workloads a site there is room for nine to fifteen on each, twelve in the
 *   mean. Sites differ in quality: a score is the setting's quality (0 to 60) and a random part (0 to 40).
 * - FULL: as LOOSE, but the sites supply no more than is requested.
 * - APPS: as LOOSE, but each workload is one of 200 applications, and has its scores.
 * - TIGHT: requests of 1 to 3 units, scores 0 to 100 at random: a few workloads fill a site, and which of
 *   them fit together decides. The hard kind for a relaxation.
 * - DEVICES: requests of 1 to 3 units and scores as LOOSE: what a site is set to decides. */
#pragma once

#include "controller/optimize/problem.h"

#include <stddef.h>
#include <stdint.h>

enum instance_kind { INSTANCE_LOOSE, INSTANCE_TIGHT, INSTANCE_DEVICES, INSTANCE_FULL, INSTANCE_APPS };

struct instance {
    struct opt_problem problem; /* borrows from the rest */
    int64_t *requests, *supplies;
    uint32_t *replicas, *first_setting;
    int16_t *scores;
};

/* `settings` are those of one site. Ends the program when memory runs out. */
struct instance instance_make(enum instance_kind kind, size_t sites, size_t workloads, size_t settings,
                              uint64_t seed);
void instance_done(struct instance *i);
