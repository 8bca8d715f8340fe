/* A reader of protobuf's format over bytes in memory, field by field, without a copy. Pure; any thread. */
#pragma once

#include "exporter/base/str.h"
#include "exporter/num/num.h"

#include <endian.h>

enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2 }; /* field numbers of an attribute */

enum wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

struct wire_field {
    uint32_t number;
    uint32_t type;
    uint64_t value;   /* of a number; for WIRE_BYTES their length */
    const char *from; /* where the field begins, with its tag */
    struct str bytes; /* of WIRE_BYTES */
};

/* The number of n bytes, little-endian as protobuf has it, at any address. */
static inline uint64_t wire_fixed(const char *p, size_t n)
{
    uint64_t v = 0;

    memcpy(&v, p, n);
    return le64toh(v);
}

/* Cuts the next field off a message. False at its end and, with something left, where it is malformed. */
static inline bool wire_next(struct str *rest, struct wire_field *f)
{
    const char *p = rest->p, *end = rest->n ? p + rest->n : p;
    uint64_t tag, n = 0;

    f->from = p;
    p = get_varint(p, end, &tag);
    if (!p || tag >> 32 || tag < 8)
        return false;
    f->number = (uint32_t)(tag >> 3);
    f->type = (uint32_t)(tag & 7);
    f->value = 0;
    switch (f->type) {
    case WIRE_VARINT:
    case WIRE_BYTES:
        p = get_varint(p, end, &f->value);
        n = f->type == WIRE_BYTES ? f->value : 0;
        break;
    case WIRE_FIXED64:
        n = 8;
        break;
    case WIRE_FIXED32:
        n = 4;
        break;
    default: /* groups, which proto3 does not have */
        return false;
    }
    if (!p || n > (uint64_t)(end - p))
        return false;
    f->bytes = (struct str){p, f->type == WIRE_BYTES ? n : 0};
    if (f->type == WIRE_FIXED64 || f->type == WIRE_FIXED32)
        f->value = wire_fixed(p, n);
    *rest = (struct str){p + n, (size_t)(end - p) - n};
    return true;
}

/* Reads on to the next field with this number. */
static inline bool wire_find(struct str *rest, unsigned number, struct wire_field *f)
{
    while (wire_next(rest, f))
        if (f->number == number)
            return true;
    return false;
}

/* The last field with this number, as protobuf wants it; all zero without one. */
static inline struct wire_field wire_last(struct str message, unsigned number)
{
    struct wire_field f, last = {0};

    while (wire_find(&message, number, &f))
        last = f;
    return last;
}
