/* Memory for what is small: if there is none, the program ends with one line. So no caller has a path for it.
 * A size that an input decides is bounded by its reader first, which returns -ENOMEM or -EFBIG instead. Any
 * thread. */
#pragma once

#include "exporter/base/def.h"

#include <stdarg.h>

/* Writes "out of memory" with the number of bytes to stderr and aborts: for a library that has found none. */
_Noreturn void memory_exhausted(size_t bytes);
/* Like malloc() and its kin, but they never return NULL, not for 0 bytes either. The memory of xcalloc()
 * is zeroed. */
void *xmalloc(size_t n) __attribute__((malloc, returns_nonnull));
void *xcalloc(size_t count, size_t n) __attribute__((malloc, returns_nonnull));
void *xrealloc(void *p, size_t n) __attribute__((returns_nonnull));
void *xreallocarray(void *p, size_t count, size_t n) __attribute__((returns_nonnull));
char *xstrdup(const char *text) __attribute__((malloc, returns_nonnull));
char *xasprintf(const char *fmt, ...) __attribute__((malloc, returns_nonnull)) PRINTF_LIKE(1, 2);
char *xvasprintf(const char *fmt, va_list ap) __attribute__((malloc, returns_nonnull)) PRINTF_LIKE(1, 0);
