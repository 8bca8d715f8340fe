/* A reader of protobuf's wire format over bytes in memory. */
#ifndef DS_OTLP_WIRE_H
#define DS_OTLP_WIRE_H

#include "exporter/base/def.h"
#include "exporter/base/str.h"
#include "exporter/base/varint.h"

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire {
    const char *p, *end;
};

struct wire_field {
    uint32_t number;
    uint32_t type;
    uint64_t value;   /* of a number; for WIRE_BYTES their length */
    const char *from; /* where the field begins, with its tag */
    struct str bytes; /* of WIRE_BYTES */
};

static inline struct wire wire_of(struct str s)
{
    const char *p = s.n ? s.p : ""; /* which may be NULL else */

    return (struct wire){p, p + s.n};
}

static inline bool wire_fixed(struct wire *w, size_t n, uint64_t *ret)
{
    if ((size_t)(w->end - w->p) < n)
        return false;
    *ret = 0;
    memcpy(ret, w->p, n);
    w->p += n;
    return true;
}

static inline bool wire_varint(struct wire *w, uint64_t *ret)
{
    const char *end;

    if (LIKELY(w->p < w->end && (unsigned char)*w->p < 0x80)) {
        *ret = (unsigned char)*w->p++;
        return true;
    }
    end = get_varint(w->p, w->end, ret);
    w->p = end ? end : w->p;
    return end != NULL;
}

/* Reads the next field. False at the end, where w->p == w->end, and where the bytes are malformed. */
static inline bool wire_next(struct wire *w, struct wire_field *f)
{
    uint64_t tag;

    f->from = w->p;
    if (w->p == w->end || !wire_varint(w, &tag))
        return false;
    f->number = (uint32_t)(tag >> 3);
    f->type = (uint32_t)(tag & 7);
    if (tag >> 32 || f->number == 0)
        return w->p = f->from, false;
    switch (f->type) {
    case WIRE_VARINT:
        if (wire_varint(w, &f->value))
            return true;
        break;
    case WIRE_FIXED64:
        if (wire_fixed(w, 8, &f->value))
            return true;
        break;
    case WIRE_FIXED32:
        if (wire_fixed(w, 4, &f->value))
            return true;
        break;
    case WIRE_BYTES:
        if (wire_varint(w, &f->value) && f->value <= (uint64_t)(w->end - w->p)) {
            f->bytes = (struct str){w->p, (size_t)f->value};
            w->p += f->value;
            return true;
        }
        break;
    default: /* groups, which proto3 does not have */
        break;
    }
    w->p = f->from;
    return false;
}

static inline double wire_double(uint64_t bits)
{
    double v;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

/* sint32's zigzag form. */
static inline int32_t wire_sint32(uint64_t v)
{
    uint32_t u = (uint32_t)v;

    return (int32_t)(u >> 1 ^ (0u - (u & 1)));
}

#endif
