/* The folder of one endpoint's spool: who may use it, when it is tried again, and the small files in it.
 * Endpoint's thread; called by the queue, and by what lies in the folder: spool.c and active.c.
 *
 *     lock     flock(2) of the process that has the folder open; the kernel ends it with the process
 *     wanted   empty, made by an agent that finds the folder locked: a replica that no longer leads sees it
 *              and closes the folder; whoever opens the folder removes it
 *
 * Nothing here waits for another process. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"

#include <sys/types.h>

struct folder {
    char *path;       /* NULL: there is none, and nothing is ever opened */
    int fd, lock_fd;  /* -1: it is not open */
    bool is_unsynced; /* files were made or renamed since the last fsync() of the folder */
    unsigned failures;
    mono_ms retry_at;
};

/* Copies the path; NULL for none. */
void folder_init(struct folder *f, const char *path);
void folder_done(struct folder *f);

/* Creates what is missing of the path, and locks the folder. -EBUSY: another process holds the lock. */
MUST_USE int folder_open(struct folder *f);
/* Another process may open it from now on. */
void folder_close(struct folder *f);
static inline bool folder_is_open(const struct folder *f)
{
    return f->lock_fd >= 0;
}

/* False if the folder, which is open, was removed or replaced by another one. */
bool folder_is_there(const struct folder *f);
/* Asks the process that holds the lock to close the folder: see `wanted`. */
void folder_ask_for(const struct folder *f);
/* Whether another process has asked since the folder was opened. */
bool folder_is_wanted(const struct folder *f);

/* ---- When to try again what has failed ---- */

bool folder_is_due(const struct folder *f, mono_ms now);
/* It has failed once more: the next try comes after 1 s to 60 s, with jitter. */
void folder_retry_later(struct folder *f, mono_ms now);
void folder_retry_now(struct folder *f, mono_ms now);
/* It works: the next failure is the first of a row. */
void folder_note_success(struct folder *f);

/* ---- Small files ---- */

/* 0 if write() has returned that all was written; else a negative errno. */
int write_result(ssize_t n, size_t want);
/* Opens a file to write to, and creates it if it is missing. The descriptor, or -1 with errno. */
int folder_create(const struct folder *f, const char *name);
/* Appends to a file of `at` bytes, or creates it. -ESTALE: another size. A failure leaves it as it was. */
MUST_USE int folder_append(const struct folder *f, const char *name, size_t at, struct str bytes);
/* Syncs the file that was appended to. If it is not called `name` yet, it replaces the file that is. */
MUST_USE int folder_commit(struct folder *f, const char *appended, const char *name);
/* Syncs which files there are, if some were made or renamed since the last time. */
MUST_USE int folder_sync(struct folder *f);
MUST_USE int folder_read(const struct folder *f, const char *name, struct buf *into);
void folder_remove(const struct folder *f, const char *name);
