/* Which series of a scorer are alive at the receiver, remembered on disk for the stale markers after a crash: one file per
 * scorer, written before the first sample of a new set is queued. Sender thread. */
#ifndef DS_REMOTEWRITE_ACTIVE_H
#define DS_REMOTEWRITE_ACTIVE_H

#include "remotewrite/labels.h"
#include "remotewrite/spool.h"

/* Remembers. l may be NULL: none is alive, and the file goes. Negative errno of writing. */
MUST_USE int active_save(struct spool *s, struct str lane, const struct label_bytes *l);
/* Reads every file of the folder that is whole. on_lane takes the label bytes over, returns 0 or -ENOMEM. */
MUST_USE int active_load(struct spool *s, int (*on_lane)(void *arg, struct str lane, struct label_bytes *l),
                         void *arg);

/* The file's format, for tests and fuzzing. -ENOMEM, -EFBIG; -EBADMSG. */
MUST_USE int active_put(struct buf *into, struct str lane, const struct label_bytes *l);
MUST_USE int active_read(struct str bytes, struct str *ret_lane, struct label_bytes **ret);

#endif
