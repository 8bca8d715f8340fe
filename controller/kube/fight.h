/* A fight over an object: another writer keeps undoing what this program writes to it. Part of an object's
 * writer, which says when one begins and ends; on the loop. What managedFields tell of the other writer is a
 * hint for people, and decides nothing. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum kube_rival {
    RIVAL_UNKNOWN, /* managedFields have nobody who wrote later than we: who only removes leaves no trace */
    RIVAL_NAMED
};

enum { KUBE_MANAGER_BYTES = 129 }; /* API servers refuse a longer field manager */

struct kube_fight {
    bool is_on;
    enum kube_rival rival;
    char manager[KUBE_MANAGER_BYTES]; /* RIVAL_NAMED: one line of text */
    int64_t longest_ms;               /* between a write of ours and the one that repeated it */
};

/* The condition's reason, and the Event's. */
#define KUBE_FIGHT_REASON "WriteConflict"

/* Looks for the other writer in an object that was changed after our last write. `ours`: our field manager;
 * subresource: "status" or "", of what we write. True if it has become known. */
bool kube_fight_note(struct kube_fight *f, const json_t *object, const char *ours, const char *subresource);
/* How long a write of ours must stand for the fight to be over: twice as long as any has stood so far. */
int64_t kube_fight_settle_ms(const struct kube_fight *f);
/* A sentence for a condition or an Event, on the heap. object: what is fought over: "ManifestWork c1/x". */
char *kube_fight_text(const struct kube_fight *f, const char *object);
