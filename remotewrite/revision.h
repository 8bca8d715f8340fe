/* A frame after few of its series have come or gone: revised element by element, for a tenth of what it costs
 * to pack all labels anew. The series that stay are copied as they are packed, and a copy whose source has
 * moved gets the new distance. Only series that copied from one which has gone, or is too far away now, are
 * packed again.
 *
 * Endpoint's thread, though nothing here depends on that. */
#pragma once

#include "exporter/base/def.h"
#include "remotewrite/frame.h"
#include "remotewrite/labels.h"
#include "remotewrite/packer.h"

/* What revising needs, which stays for the next frame. Zero at first. */
struct revision_room {
    char *p; /* the block while it is made */
    size_t cap;
    struct packer packer;
};

void revision_room_done(struct revision_room *room);

/* What has changed. A frame holds all series of its set that lie between its first and its last one, in their
 * order, and the new one holds [begin, end) of the new set. */
struct revision {
    const uint32_t *moved;       /* as in struct series_diff */
    size_t begin, end;           /* at least one series */
    struct label_source *labels; /* of the new set; what stays has the labels that it had */
    int64_t at;                  /* a timestamp of as many bytes as those of the frame */
};

/* Gives the frame the series of the new set. False if it cannot be revised, because of labels that are left
 * out, or of its size: it is as it was, and is to be made anew. */
MUST_USE bool frame_revise(struct frame *f, const struct revision *v, struct revision_room *room);
/* Without series that came or went: the indices change. */
void frame_renumber(struct frame *f, const uint32_t *moved);
