/* When malloc() gives memory back to the system by itself. Once, before other threads are started.
 *
 * Bodies of many megabytes come and go with each round. With a fixed threshold each is a mapping of its own,
 * returned to the system when freed; the default threshold would rise with the first body, and the heap would
 * keep the memory.
 *
 * What it is worth: an agent of ten scorers with 1,500 series each, every five seconds, is charged a working
 * set of 8.6 MB, 10.1 MB without it, at the most 8.8 and 13.7 (November 2026; charged.py of test/bench).
 * Its price: a system call and fresh pages for each large block, unless it is a spare one (spare.h); a round
 * takes as much CPU either way. */
#pragma once

void heap_set_thresholds(void);
