/* Segments that were set aside, and what is told about those that hold no record in use. */
#include "remotewrite/spool_internal.h"

#include "exporter/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

enum { ASIDE_SEGMENTS = 4 }; /* as many bytes as this number of segments */

const char *const spool_aside_suffixes[ASIDE_KINDS] = {
    [ASIDE_DAMAGED] = ".seg.damaged", [ASIDE_UNKNOWN] = ".seg.unknown"};

/* The files that were set aside, as they are in the folder now. */
struct aside_scan {
    const struct spool *spool;
    struct spool_files files[ASIDE_KINDS];
    struct spool_name oldest;
};

static int aside_count(void *arg, const char *name)
{
    struct aside_scan *scan = arg;
    unsigned kind = 0;
    struct stat st;

    while (kind < ASIDE_KINDS && (strlen(name) < 12 || strcmp(name + 12, spool_aside_suffixes[kind]) != 0))
        kind++;
    if (kind == ASIDE_KINDS || fstatat(scan->spool->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    scan->files[kind].n++;
    scan->files[kind].bytes += (uint64_t)st.st_size;
    if (!*scan->oldest.text || strcmp(name, scan->oldest.text) < 0)
        (void)snprintf(scan->oldest.text, sizeof(scan->oldest.text), "%s", name);
    return 0;
}

void spool_trim(struct spool *s)
{
    spool_drop_empty(s);
    for (;;) {
        struct aside_scan scan = {.spool = s};
        uint64_t bytes;
        size_t n;

        if (spool_each_file(s, "", aside_count, &scan) < 0)
            return;
        memcpy(s->aside, scan.files, sizeof(s->aside));
        n = s->aside[ASIDE_DAMAGED].n + s->aside[ASIDE_UNKNOWN].n;
        bytes = s->aside[ASIDE_DAMAGED].bytes + s->aside[ASIDE_UNKNOWN].bytes;
        /* The newest stays, whatever its size. */
        if (n <= 1 || (n <= SPOOL_ASIDE_FILES && bytes <= (uint64_t)ASIDE_SEGMENTS * s->segment_bytes))
            return;
        log_warn("old spool segment removed that was set aside", L_STR("dir", s->dir),
                 L_STR("file", scan.oldest.text));
        if (unlinkat(s->dir_fd, scan.oldest.text, 0) < 0)
            return;
    }
}

int spool_set_aside(struct spool *s, const struct spool_segment *segment, enum spool_aside_kind kind)
{
    const struct spool_name name = spool_name(segment->number, ".seg"),
                            aside = spool_name(segment->number, spool_aside_suffixes[kind]);
    char path[SPOOL_PATH_BYTES];

    if (renameat(s->dir_fd, name.text, s->dir_fd, aside.text) < 0)
        return -errno;
    (void)spool_path(s, aside.text, path);
    log_error(kind == ASIDE_UNKNOWN ? "spool segment of another version set aside"
                                    : "damaged spool segment set aside",
              L_STR("path", path), L_INT("bytes", segment->size));
    s->folder_dirty = true;
    s->aside[kind].n++;
    s->aside[kind].bytes += segment->size;
    return 0;
}

uint64_t spool_idle_bytes(const struct spool *s)
{
    return s->unread_bytes + s->aside[ASIDE_DAMAGED].bytes + s->aside[ASIDE_UNKNOWN].bytes;
}

void spool_stats(const struct spool *s, struct spool_stats *ret)
{
    *ret = (struct spool_stats){.bytes = s->bytes + spool_idle_bytes(s),
                                .unread.bytes = s->unread_bytes,
                                .damaged = s->aside[ASIDE_DAMAGED],
                                .unknown = s->aside[ASIDE_UNKNOWN],
                                .damaged_bytes = s->damaged_bytes,
                                .damaged_places = s->damaged_places,
                                .torn_bytes = s->torn_bytes};
    for (const struct spool_segment *segment = s->unread; segment; segment = segment->next)
        ret->unread.n++;
    if (s->unread)
        (void)snprintf(ret->error, sizeof(ret->error), "cannot read spool segment %s/%012" PRIu64 ".seg: %s",
                       s->dir, s->unread->number, strerror(-s->unread->error));
}
