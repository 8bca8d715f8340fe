/* Owns a few atomic slots with a block each, the last one kept first: no lock, and nobody waits. A kept block
 * begins with its size. */
#include "exporter/base/spare.h"

#include "exporter/base/advice.h"
#include "exporter/base/invariant.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SPARES = 4 };

static char *spares[SPARES]; /* atomic */

char *spare_take(size_t n, size_t max, size_t *ret_size)
{
    for (size_t i = 0; i < SPARES; i++) {
        char *block = __atomic_exchange_n(&spares[i], NULL, __ATOMIC_ACQUIRE);
        size_t size;

        if (!block)
            continue;
        memcpy(&size, block, sizeof(size));
        invariant(size >= SPARE_MIN_BYTES);
        if (size >= n && size / 2 <= n && size <= max) {
            *ret_size = size;
            return block;
        }
        /* Another thread may have kept one here meanwhile: that one goes. */
        free(__atomic_exchange_n(&spares[i], block, __ATOMIC_ACQ_REL));
    }
    return NULL;
}

void spare_keep(char *block, size_t n)
{
    invariant(n >= SPARE_MIN_BYTES);
    advise_pages(block, n, MADV_FREE);
    memcpy(block, &n, sizeof(n));
    for (size_t i = 0; i < SPARES; i++)
        block = __atomic_exchange_n(&spares[i], block, __ATOMIC_ACQ_REL);
    free(block);
}

void spare_trim(void)
{
    char *block = NULL;

    for (size_t i = SPARES; i-- > 0 && !block;)
        block = __atomic_exchange_n(&spares[i], NULL, __ATOMIC_ACQUIRE);
    free(block);
}
