/* Comparisons of passwords that wait for their turn, and the results of those made. Not locked.
 *
 * They run in order of arrival, but known users first, so that made-up names cannot keep scrapers out. While
 * many wait, this tells known names from unknown ones: names are not secrets, and scrapes must go on. Each
 * client address may have a few waiting for each known user, and as many for all unknown ones together. */
#ifndef DS_WEB_AUTH_QUEUE_H
#define DS_WEB_AUTH_QUEUE_H

#include "exporter/base/clock.h"
#include "exporter/base/digest.h"
#include "exporter/base/httpd.h"
#include "exporter/web/basic_auth.h"

#include <sys/queue.h>

enum { AUTH_QUEUE_MAX = 64, AUTH_QUEUE_SHARE = 2 };

/* An IPv4 address, or the /64 of an IPv6 address, which one client may have as a whole. */
struct auth_peer {
    unsigned char bytes[9];
};

struct auth_peer auth_peer_of(const struct sockaddr *address);

/* One comparison, and the requests that wait for its result. */
struct auth_job {
    char digest[DIGEST_TEXT_BYTES];
    char hash[BCRYPT_BYTES]; /* of an unknown user: another one's */
    bool known;
    struct auth_peer peer;
    mono_ms since;
    char password[PASSWORD_MAX_BYTES];
    size_t password_bytes;
    struct httpd_ticket *tickets;
    size_t n_tickets;
    TAILQ_ENTRY(auth_job) entry;
};

/* -ENOMEM. */
void auth_job_add_ticket(struct auth_job *j, const struct httpd_ticket *ticket);
/* Wipes the password. Takes NULL, returns NULL. */
struct auth_job *auth_job_free(struct auth_job *j);
DEFINE_CLEANUP(struct auth_job, auth_job_free)

struct auth_queue {
    TAILQ_HEAD(auth_jobs, auth_job) jobs;
    size_t n;
};

void auth_queue_init(struct auth_queue *q);
/* Frees the jobs. */
void auth_queue_done(struct auth_queue *q);
/* NULL if none has this digest. */
struct auth_job *auth_queue_find(struct auth_queue *q, const char *digest);
/* -EAGAIN: this client and user have their share; -EBUSY: the queue is full. Else it takes the job. In a full
 * queue a known user displaces the unknown one that came last, which becomes *ret_displaced. */
MUST_USE int auth_queue_push(struct auth_queue *q, struct auth_job *j, struct auth_job **ret_displaced);
/* NULL if there is none. */
struct auth_job *auth_queue_pop(struct auth_queue *q);

/* ---- Results of comparisons that need not be repeated, by digest ---- */

enum { AUTH_CACHE_GOOD = 256, AUTH_CACHE_BAD = 64, AUTH_CACHE_BAD_MS = 10 * 1000 };

struct auth_entry {
    char digest[DIGEST_TEXT_BYTES]; /* empty: free */
    mono_ms at;                     /* last use of a good one, time of a bad one */
};

/* Good results stay until AUTH_CACHE_GOOD newer ones have been used; bad ones AUTH_CACHE_BAD_MS or until as
 * many as AUTH_CACHE_BAD have come. Bad ones never displace good ones. */
struct auth_cache {
    struct auth_entry good[AUTH_CACHE_GOOD], bad[AUTH_CACHE_BAD];
};

/* False if the result is not known. */
bool auth_cache_get(struct auth_cache *c, const char *digest, mono_ms now, bool *ret_good);
void auth_cache_put(struct auth_cache *c, const char *digest, mono_ms now, bool good);

#endif
