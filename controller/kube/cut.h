/* Replaces long strings of which only a hash is needed, before jansson reads the document: it reads
 * strings byte by byte and keeps them. */
#ifndef DS_KUBE_CUT_H
#define DS_KUBE_CUT_H

#include "exporter/base/buf.h"

struct kube_cut {
    const char *name; /* the member's, of letters only */
    uint64_t (*hash)(struct str text);
};

enum { KUBE_CUT_MIN_BYTES = 256, KUBE_CUT_WORD_BYTES = 20 };

/* Appends the JSON text with each string longer than KUBE_CUT_MIN_BYTES that is the value of a member of
 * that name replaced by "cut:" and 16 hexadecimal digits: the hash of the unescaped string. Only compact
 * text, as API servers write it, is cut; invalid JSON stays invalid. -ENOMEM, -EFBIG. */
MUST_USE int kube_cut(const struct kube_cut *cut, struct str text, struct buf *into);
/* Reads the hash from such a replacement. Nobody can forge one without knowing the hash function. False
 * for other text. */
bool kube_cut_read(struct str text, uint64_t *ret);

#endif
