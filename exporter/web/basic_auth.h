/* HTTP basic authentication (RFC 7617) against bcrypt hashes.
 *
 * One comparison runs at a time, on a thread of its own with a low priority. A good result is remembered by a
 * digest of user, hash and password, so that a scraper waits once, and a flood of wrong passwords does not
 * delay those who have been let in. Comparisons wait in order of arrival, but known users first, so that
 * made-up names cannot keep scrapers out. While many wait, this tells known names from unknown ones: names
 * are not secrets, and scrapes must go on. Each client address may have a few waiting for each known user,
 * and as many for all unknown ones together. */
#ifndef DS_WEB_BASIC_AUTH_H
#define DS_WEB_BASIC_AUTH_H

#include "exporter/base/httpd.h"
#include "exporter/base/str.h"

enum {
    /* A comparison that has not begun after this is not made any more: of the guard's deadline_ms. */
    BASIC_AUTH_DEADLINE_MS = 10 * 1000,
    BCRYPT_BYTES = 60,        /* of a hash, without a NUL */
    BCRYPT_MAX_COST = 18,     /* one comparison takes a quarter of a minute */
    BCRYPT_SLOW_COST = 14,    /* a second */
    PASSWORD_MAX_BYTES = 511, /* libxcrypt's limit; bcrypt itself uses the first 72 */
};

struct web_user {
    struct str name, hash;
};

struct basic_auth;

/* Starts the thread. -EAGAIN. */
MUST_USE int basic_auth_new(struct basic_auth **ret);
/* Ends all decisions: must be called before httpd_stop(). A comparison under way goes on without effect. */
void basic_auth_close(struct basic_auth *b);
/* After httpd_stop(). Takes NULL, returns NULL. */
struct basic_auth *basic_auth_free(struct basic_auth *b);
/* Replaces the users, which stay the caller's until the next ones are set. */
void basic_auth_set_users(struct basic_auth *b, const struct web_user *users, size_t n);
/* A guard's check(). There must be users. */
enum httpd_access basic_auth_check(struct basic_auth *b, const struct httpd_request *rq,
                                   const struct httpd_ticket *ticket, struct httpd_refusal *ret);
/* The cost of a hash; 0 if it is none with $2a$, $2b$ or $2y$ and a cost from 4 to 31. */
unsigned bcrypt_cost(struct str hash);

#endif
