/* Owns nothing. All parts of a sentence are ours, so that it fits. */
#include "controller/kube/list_error.h"

#include "exporter/base/invariant.h"

#include <errno.h>

static int list_error_end(struct buf *why, const char *problem)
{
    buf_puts(why, ": ");
    buf_puts(why, problem);
    invariant(buf_failed(why) == 0);
    return -EINVAL;
}

static void list_error_begin(struct buf *why, const struct list_place *at)
{
    buf_clear(why);
    buf_printf(why, "%s[%zu]", at->list, at->i);
}

int list_error(struct buf *why, const char *list, const char *problem)
{
    buf_clear(why);
    buf_puts(why, list);
    return list_error_end(why, problem);
}

int list_entry_error(struct buf *why, const struct list_place *at, const char *problem)
{
    list_error_begin(why, at);
    return list_error_end(why, problem);
}

int list_member_error(struct buf *why, const struct list_place *at, const char *key, const char *problem)
{
    list_error_begin(why, at);
    buf_putc(why, '.');
    buf_puts(why, key);
    return list_error_end(why, problem);
}
