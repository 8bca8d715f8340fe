/* Makes calls on files fail: open, openat, read, pread, write, pwrite, pwritev, fsync, fdatasync, ftruncate
 * and renameat of the code under test. Linked by --wrap, as oom.h. One thread. */
#pragma once

#include <stdbool.h>

/* The nth call from now (from 1; 0 for none) and the following, `calls` in all, fail with this errno. With
 * ENOSPC the first write among them writes half of what it should. */
void disk_fail_at(long nth, long calls, int error);
/* Whether a call has failed since disk_fail_at(). */
bool disk_has_failed(void);
