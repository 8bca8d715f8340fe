/* Private to body*.c: converts a 1.0 message to 2.0. */
#ifndef DS_REMOTEWRITE_BODY_V2_H
#define DS_REMOTEWRITE_BODY_V2_H

#include "exporter/base/buf.h"
#include "remotewrite/families.h"

/* Appends the 2.0 message with type and help. `own`: metadata of the program's own metrics, whose counters
 * get a start timestamp too; NULL: the series are scores. -EBADMSG, -ENOMEM, -EFBIG. */
MUST_USE int body_v2_message(struct str v1, const struct families *own, struct buf *into);

#endif
