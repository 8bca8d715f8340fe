/* What an API server stores, and what it shows of that: to lists and to streams of events. sim.h has a line
 * on each of the files. */
#pragma once

#include "test/universe/sim.h"
#include "test/universe/world.h"

#include <jansson.h>

/* The API servers behind one address: both show one store, and the second is behind at times. Seeds without
 * universe.has_two_servers ask the first alone. */
enum api_server { API_FRESH, API_LAGGING, API_SERVERS };

enum { MAX_OBJECTS = 512, HISTORY = 256 /* changes that a watch can resume from */ };

struct object {
    char resource[96];
    json_t *json; /* never changed once it is stored: the history and both API servers have the same one */
};

/* What one API server knows of the store. */
struct view {
    struct object objects[MAX_OBJECTS];
    size_t n;
    uint64_t version;
    int64_t lags_until; /* it gets the changes one by one until then, and late */
    int64_t lists_lagged_until, next_step;
    bool lists_lag; /* and its lists are as old as its streams, rather than read from the store */
};

const struct view *etcd_view(int server, enum api_server api);
/* That of the store, which an API server may not have reached. */
uint64_t etcd_version(int server);
/* NULL for none. */
json_t *view_lookup(const struct view *v, const char *resource, const char *namespace, const char *name);

/* These take the reference. */
void etcd_create(int server, const char *resource, json_t *object);
/* A write that changes nothing makes no new version. */
void etcd_replace(int server, const char *resource, json_t *object);
/* Waits for finalizers. */
void etcd_delete(int server, const char *resource, json_t *object);

/* ---- Streams of events ---- */

/* A stream of what has changed since a version, by that API server. `fields` and `labels` select. */
void watch_open(const struct kube_ask *ask, enum api_server api, const char *fields, const char *labels,
                uint64_t since, int64_t seconds, struct response *r);
bool matches_field(const json_t *object, const char *selector);
bool matches_label(const json_t *object, const char *selector);
/* Ends the server's streams, or has them fall silent. */
void watches_break(int server, bool silently);

/* ---- The past ---- */

/* From now on the store may go back to what it is now. */
void etcd_set_floor(int server);
/* The second API server falls behind. */
void etcd_lag(int server, int64_t until, bool lists_lag);
bool etcd_is_lagging(int server);
/* Whether its lists were old at some time in the last so many milliseconds. */
bool etcd_lists_lagged(int server, int64_t ms);
void etcd_forget_history(int server);

/* How versions go on after a restore from a backup. */
enum restore {
    RESTORE_PLAIN,  /* from that of the backup: they come again, with other contents */
    RESTORE_BUMPED, /* far ahead of all that were given, as etcdutl's `--bump-revision` does it */
};

/* How many changes can be undone. */
uint64_t etcd_undoable(int server);
/* The store is what it was `changes` changes ago. */
void etcd_restore(int server, uint64_t changes, enum restore how);
/* Whether the store has given as many versions as before the last restore. */
bool etcd_has_passed_restore(int server);
/* The newest that was ever given, also before a restore. */
uint64_t etcd_newest_version(int server);

void etcd_tick(void);

/* ---- In any file ---- */

static inline const char *stored_text(const json_t *object, const char *a, const char *b)
{
    const json_t *v = json_object_get(object, a);

    return json_string_value(b ? json_object_get(v, b) : v) ?: "";
}
