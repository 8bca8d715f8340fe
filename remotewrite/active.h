/* The active series of each scorer, stored on disk so that they can get stale markers after a crash: one
 * file per scorer, written before the first sample of a new set is queued. Sender thread only. */
#ifndef DS_REMOTEWRITE_ACTIVE_H
#define DS_REMOTEWRITE_ACTIVE_H

#include "remotewrite/labels.h"
#include "remotewrite/spool.h"

/* Stores the active series of a lane; without any (l may be NULL) the file is removed. Negative errno of
 * the write. */
MUST_USE int active_save(struct spool *s, struct str lane, const struct label_bytes *l);
/* Reads every intact file. on_lane takes ownership of the label bytes and returns 0 or -ENOMEM. */
MUST_USE int active_load(struct spool *s, int (*on_lane)(void *arg, struct str lane, struct label_bytes *l),
                         void *arg);

/* The file format, also for tests and fuzzing. -ENOMEM, -EFBIG; -EBADMSG. */
MUST_USE int active_put(struct buf *into, struct str lane, const struct label_bytes *l);
MUST_USE int active_read(struct str bytes, struct str *ret_lane, struct label_bytes **ret);

#endif
