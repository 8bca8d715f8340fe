/* Starting takes more memory than running: OpenSSL's tables, the parser of the configuration, first rounds.
 * xmalloc() returns only what is free at the end of the heap; code and constants stay mapped once used. */
#include "exporter/base/trimmer.h"

#include "exporter/base/clock.h"

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>

enum { FIRST_MS = 10000, EVERY_MS = 60000 };

/* What is still in use is mapped again, from the page cache, when it is used. Not repeated: it would remove
 * the breakpoints of a debugger. */
static int unmap_constants(struct dl_phdr_info *object, size_t size, void *arg)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

    (void)size;
    (void)arg;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t from = (object->dlpi_addr + segment->p_vaddr) & ~(page - 1);
        uintptr_t to = object->dlpi_addr + segment->p_vaddr + segment->p_filesz;

        if (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W))
            (void)madvise((void *)from, to - from, MADV_DONTNEED);
    }
    return 0;
}

static void trim(struct timer *timer)
{
    struct trimmer *t = CONTAINER_OF(timer, struct trimmer, timer);

    (void)malloc_trim(0);
    if (!t->unmapped)
        (void)dl_iterate_phdr(unmap_constants, NULL);
    t->unmapped = true;
    loop_timer_set(t->loop, timer, mono_add(loop_now(t->loop), EVERY_MS));
}

void trimmer_start(struct trimmer *t, struct loop *loop)
{
    *t = (struct trimmer){.loop = loop, .timer = {.fn = trim}};
    loop_timer_set(loop, &t->timer, mono_add(loop_now(loop), FIRST_MS));
}

void trimmer_stop(struct trimmer *t)
{
    loop_timer_clear(t->loop, &t->timer);
}
