/* Comparisons of passwords with bcrypt hashes, for basic authentication (RFC 7617).
 *
 * One runs at a time, on a thread of its own with a low priority. A good result is remembered by a digest of
 * user, hash and password, so that a scraper waits once, and a flood of wrong passwords does not delay those
 * who have been let in. Comparisons wait in order of arrival, but known users first, so that made-up names
 * cannot keep scrapers out. While many wait, this tells known names from unknown ones: names are not secrets,
 * and scrapes must go on. Each client address may have a few waiting for each known user, and as many for all
 * unknown ones together. */
#pragma once

#include "exporter/base/str.h"
#include "exporter/http/httpd.h"
#include "exporter/web/web_file.h"

enum { PASSWORDS_DEADLINE_MS = 10 * 1000 /* of the guard: a request that has waited longer is refused */ };

/* The challenge of a server with users, and the refusal of one that may be. */
#define PASSWORD_CHALLENGE "Basic realm=\"dynamic-scoring\", charset=\"UTF-8\""
extern const struct httpd_refusal password_is_wrong;

struct passwords;

/* What a request claims, and the hash to compare it with. */
struct password_claim {
    struct str user, password;
    bool is_known; /* whether there is such a user */
    char hash
        [BCRYPT_BYTES]; /* the user's; another one's for an unknown user, so that both take the same time */
    const struct sockaddr *peer;
};

/* Finds user and password in the value of Authorization, decoded into `all`. False if there are none. */
bool password_claim_parse(const char *authorization, struct buf *all, struct password_claim *ret);

/* -EAGAIN without a thread. */
MUST_USE int passwords_new(struct passwords **ret);
/* Decides the ticket at once, or when the comparison has ended. Server's thread. */
void passwords_check(struct passwords *p, const struct password_claim *claim,
                     const struct httpd_ticket *ticket);
/* Lets nobody else in: no ticket is decided from then on, but those that are being checked. */
void passwords_close(struct passwords *p);
/* After the server was stopped. A comparison under way goes on without effect. It may take a quarter of a
 * minute, and samples are still to be sent: after a second it is left alone, to end with the process.
 * Takes NULL, returns NULL. */
struct passwords *passwords_free(struct passwords *p);
