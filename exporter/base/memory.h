/* How much memory the process may use, and allocation that cannot fail. */
#ifndef DS_BASE_MEMORY_H
#define DS_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* The lowest limit of the process's cgroup and those above it (version 2, or the memory controller of version
 * 1), or else the machine's memory. `root` is put before the paths of /proc and /sys; "" outside of tests. */
uint64_t memory_limit(const char *root);

/* Logs "out of memory" with the number of bytes and aborts. */
_Noreturn void memory_exhausted(size_t bytes);
/* Like malloc() and its kin, but they end the program if there is no memory: for what is small. A size that
 * an input decides is bounded by its reader, which returns -ENOMEM or -EFBIG instead. */
void *xmalloc(size_t n) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t count, size_t n) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t n) __attribute__((returns_nonnull));
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull));

#endif
