/* A cut: long strings of a document are replaced by their hashes before it is parsed, as jansson is slow to
 * read them. */
#pragma once

#include "exporter/base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum { KUBE_CUT_MIN_BYTES = 256 };

struct kube_cut {
    const char *name; /* the member's, of letters only */
    uint64_t (*hash)(struct str text);
    /* Gets each new text, unescaped, and its hash, but none that repeats the last one. May be NULL */
    void (*learn)(void *arg, uint64_t hash, struct str text);
    void *arg;
    /* Private: the last one, raw and with its closing quote. Most objects of a fleet contain the same one,
     * and to compare is much cheaper than to read. */
    struct buf last;
    uint64_t last_hash;
};

/* Appends the JSON text with each string of more than KUBE_CUT_MIN_BYTES in a member of that name replaced
 * by "cut:" and the hash of the unescaped string, in 16 digits. Only compact text, as API servers write
 * it, is cut; invalid JSON stays invalid. -EFBIG. */
MUST_USE int kube_cut(struct kube_cut *cut, struct str text, struct buf *into);
/* Reads the hash from such a replacement; false for other text. Only its maker can make one. */
bool kube_cut_read(struct str text, uint64_t *ret);
