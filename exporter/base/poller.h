/* What a loop waits for, by epoll: the sockets of libcurl's transfers, one descriptor of the loop's own, and
 * other threads. A turn costs what is ready, not what is open: a peer that does not answer costs nothing
 * until its deadline. One for each loop, whose thread calls all of this except for poller_wake(). */
#pragma once

#include "exporter/base/def.h"

#include <curl/curl.h>
#include <stdbool.h>

struct poller;

/* -EMFILE: no descriptors left; -ENOMEM. */
MUST_USE int poller_new(struct poller **ret);
/* All transfers have been removed. */
struct poller *poller_free(struct poller *p);

/* The multi handle, whose transfers it drives. */
CURLM *poller_multi(struct poller *p);

/* Also waits until fd can be read; one for each poller. -ENOSPC: the limit of fs.epoll.max_user_watches. */
MUST_USE int poller_watch(struct poller *p, int fd);
/* Before fd is closed. Does nothing if none is watched. */
void poller_unwatch(struct poller *p);

/* Any thread. Ends the wait, or the next one. */
void poller_wake(struct poller *p);
/* Waits at most `ms` for something to do, and tells whether the watched descriptor can be read. A negative
 * errno. */
MUST_USE int poller_wait(struct poller *p, int ms, bool *ret_readable);
/* Runs the transfers that the last wait found ready, and those whose deadlines have come: calls the callbacks
 * of transfers. -EIO: libcurl has given up all of them, for want of memory. */
MUST_USE int poller_run_transfers(struct poller *p);
