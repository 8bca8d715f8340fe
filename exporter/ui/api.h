/* Answers of /api/v1. */
#ifndef DS_UI_API_H
#define DS_UI_API_H

#include "exporter/base/httpd.h"
#include "exporter/ui/out.h"

/* r: of what wrote the body. 0: the body, as JSON; -EINVAL: 400 and -ENOENT: 404, both with `why` as text;
 * else 500. */
void api_reply(struct httpd_reply *reply, int r, const char *why, const struct buf *body);

#endif
