/* Private to body*.c: converts a 1.0 message to 2.0. */
#ifndef DS_REMOTEWRITE_BODY_V2_H
#define DS_REMOTEWRITE_BODY_V2_H

#include "exporter/base/buf.h"

/* Appends the 2.0 message; score series get type and help. -EBADMSG, -ENOMEM, -EFBIG. */
MUST_USE int body_v2_message(struct str v1, struct buf *into);

#endif
