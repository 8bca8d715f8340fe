#include "exporter/ui/api.h"

#include "exporter/base/buf.h"

#include <errno.h>
#include <stdio.h>

void api_reply(struct httpd_reply *reply, int r, const char *why, const struct buf *body)
{
    char text[512];

    if (r == 0) {
        httpd_reply_copy(reply, buf_str(body));
        reply->content_type = "application/json";
        return;
    }
    if (r != -EINVAL && r != -ENOENT)
        why = r == -EFBIG ? "the answer is too large; set limit" : "out of memory";
    (void)snprintf(text, sizeof(text), "%s\n", why);
    httpd_reply_text(reply, r == -EINVAL ? 400 : r == -ENOENT ? 404 : 500, str_of(text));
}
