/* Makes one allocation of the code under test fail.
 *
 *     FOR_EACH_ALLOCATION_FAILURE (n) {
 *         int r = thing_new(&t);
 *         if (r == 0)
 *             thing_free(t);
 *         else
 *             assert_int_equal(r, -ENOMEM);
 *         assert_true(r == 0 || oom_happened());
 *     }
 *
 * Link oom.c and pass the linker:
 *     -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=strdup,--wrap=strndup
 * Only calls from objects that are linked in are wrapped; those inside shared libraries are not. */
#ifndef DS_TEST_OOM_H
#define DS_TEST_OOM_H

#include <stdbool.h>

/* The nth allocation from now fails, once: from 1; 0 for none. */
void oom_fail_at(long nth);
/* Whether it has failed since oom_fail_at(). */
bool oom_happened(void);
/* Arms the failure after the nth when that one happened (or n is 0) and returns its number; otherwise 0. */
long oom_next(long n);

/* Runs the body with the first allocation failing, then the second, ...; the last run has no failure. */
#define FOR_EACH_ALLOCATION_FAILURE(n) for (long n = oom_next(0); n > 0; n = oom_next(n))

#endif
