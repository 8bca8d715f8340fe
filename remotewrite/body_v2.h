/* Private to body*.c: the 2.0 message of a 1.0 message. */
#ifndef DS_REMOTEWRITE_BODY_V2_H
#define DS_REMOTEWRITE_BODY_V2_H

#include "exporter/base/buf.h"

/* Series that are scores get their type and help with them. -EBADMSG, -ENOMEM, -EFBIG. */
MUST_USE int body_v2_message(struct str v1, struct buf *into);

#endif
