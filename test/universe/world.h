/* Agents and the servers around them. */
#ifndef DS_TEST_UNIVERSE_WORLD_H
#define DS_TEST_UNIVERSE_WORLD_H

#include <stdint.h>

/* Runs a universe: faults, then a time in which everything heals, and what must hold after it. Returns the
 * virtual milliseconds. */
int64_t world_run(uint64_t seed);

#endif
