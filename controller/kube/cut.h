/* Documents with one long string of which only a hash is wanted: it is replaced before jansson sees it,
 * which reads strings byte by byte and would keep them. */
#ifndef DS_KUBE_CUT_H
#define DS_KUBE_CUT_H

#include "exporter/base/buf.h"

struct kube_cut {
    const char *name; /* of the member: letters only */
    uint64_t (*hash)(struct str text);
};

enum { KUBE_CUT_MIN_BYTES = 256, KUBE_CUT_WORD_BYTES = 20 };

/* Appends JSON text in which each string that is the value of a member of that name, and longer than
 * KUBE_CUT_MIN_BYTES, is replaced by the word "cut:" and 16 hexadecimal digits of the hash of what the
 * string spells. Only compact text, as API servers write it, is cut; what is no JSON stays none. -ENOMEM,
 * -EFBIG. */
MUST_USE int kube_cut(const struct kube_cut *cut, struct str text, struct buf *into);
/* Whether the text is such a word, which no one can make who does not know the hash. */
bool kube_cut_read(struct str text, uint64_t *ret);

#endif
