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

static void aside_name(char out[SPOOL_NAME_BYTES], const struct spool_aside *a)
{
    (void)snprintf(out, SPOOL_NAME_BYTES, "%012" PRIu64 "%s", a->number, spool_aside_suffixes[a->kind]);
}

/* False if the file is no longer there. */
static bool aside_size(const struct spool *s, struct spool_aside *a)
{
    char name[SPOOL_NAME_BYTES];
    struct stat st;

    aside_name(name, a);
    if (fstatat(s->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno != ENOENT;
    a->size = (uint64_t)st.st_size;
    return true;
}

int spool_add_aside(struct spool *s, uint64_t number, enum spool_aside_kind kind)
{
    struct spool_aside *a = calloc(1, sizeof(*a)), **end = &s->aside;

    if (!a)
        return -ENOMEM;
    a->number = number;
    a->kind = kind;
    (void)aside_size(s, a);
    s->idle_bytes += a->size;
    while (*end)
        end = &(*end)->next;
    *end = a;
    return 0;
}

static void aside_forget(struct spool *s, struct spool_aside **at)
{
    struct spool_aside *a = *at;

    *at = a->next;
    s->idle_bytes -= a->size;
    free(a);
}

void spool_trim(struct spool *s)
{
    uint64_t bytes = 0;
    size_t n = 0;

    spool_drop_empty(s);
    for (struct spool_aside **at = &s->aside; *at;) {
        s->idle_bytes -= (*at)->size;
        if (!aside_size(s, *at)) {
            s->idle_bytes += (*at)->size;
            aside_forget(s, at);
            continue;
        }
        s->idle_bytes += (*at)->size;
        bytes += (*at)->size;
        n++;
        at = &(*at)->next;
    }
    /* The newest stays, whatever its size. */
    while (n > 1 && (n > SPOOL_ASIDE_FILES || bytes > (uint64_t)ASIDE_SEGMENTS * s->segment_bytes)) {
        char name[SPOOL_NAME_BYTES];

        aside_name(name, s->aside);
        log_warn("old spool segment removed that was set aside", L_STR("dir", s->dir), L_STR("file", name),
                 L_INT("bytes", s->aside->size));
        (void)unlinkat(s->dir_fd, name, 0);
        bytes -= s->aside->size;
        n--;
        aside_forget(s, &s->aside);
    }
}

int spool_set_aside(struct spool *s, const struct spool_segment *segment, enum spool_aside_kind kind)
{
    struct spool_aside to = {.number = segment->number, .kind = kind};
    char name[SPOOL_NAME_BYTES], aside[SPOOL_NAME_BYTES];

    spool_segment_name(name, segment->number);
    aside_name(aside, &to);
    if (renameat(s->dir_fd, name, s->dir_fd, aside) < 0)
        return -errno;
    log_error(kind == ASIDE_UNKNOWN ? "spool segment of another version set aside"
                                    : "damaged spool segment set aside",
              L_STR("dir", s->dir), L_STR("file", aside), L_INT("bytes", segment->size));
    s->folder_dirty = true;
    if (spool_add_aside(s, segment->number, kind) < 0)
        log_warn("file that was set aside not counted: out of memory", L_STR("file", aside));
    return 0;
}

uint64_t spool_idle_bytes(const struct spool *s)
{
    return s->idle_bytes;
}

void spool_stats(const struct spool *s, struct spool_stats *ret)
{
    *ret = (struct spool_stats){.bytes = s->bytes + s->idle_bytes,
                                .damaged_bytes = s->damaged_bytes,
                                .damaged_places = s->damaged_places,
                                .torn_bytes = s->torn_bytes};
    for (const struct spool_segment *segment = s->unread; segment; segment = segment->next) {
        ret->unread.n++;
        ret->unread.bytes += segment->size;
    }
    for (const struct spool_aside *a = s->aside; a; a = a->next) {
        struct spool_files *to = a->kind == ASIDE_DAMAGED ? &ret->damaged : &ret->unknown;

        to->n++;
        to->bytes += a->size;
    }
    if (s->unread)
        (void)snprintf(ret->error, sizeof(ret->error), "cannot read spool segment %s/%012" PRIu64 ".seg: %s",
                       s->dir, s->unread->number, strerror(-s->unread->error));
}
