/* OTLP 1.11 on the wire: a check of a whole request by the schema, proto/otlp_metrics.proto. A request in
 * JSON becomes protobuf first. Pure; any thread. */
#pragma once

#include "exporter/base/buf.h"
#include "otlp_metrics.pb-c.h"

enum { DECODE_WHY_BYTES = 160 };

/* Whether `body` is a valid request, with all that it holds: lengths that fit, types as in the schema, and
 * at most 64 levels. Readers need not look for errors then. -EBADMSG; -EFBIG: more than 4,000,000 fields.
 * `why` says what is wrong; strings may be ill-formed UTF-8. *ret_fields is set in any case: how many were
 * read. */
MUST_USE int decode_check(struct str body, size_t *ret_fields, char why[DECODE_WHY_BYTES]);
/* Appends a message in JSON to `into` as protobuf: field names in lowerCamelCase, integers as numbers or
 * strings, bytes in base64; unknown fields are ignored. -EBADMSG, -EFBIG; no `why` if `into` is full. */
MUST_USE int decode_json(struct str json, const ProtobufCMessageDescriptor *m, struct buf *into,
                         char why[DECODE_WHY_BYTES]);
/* The same for a request. `skipped` tells of the first member that OTLP does not have, if there is one, and
 * of what it has in its place: `unknown member "resource_metrics", expected resourceMetrics`. */
MUST_USE int decode_json_request(struct str json, struct buf *into, char skipped[DECODE_WHY_BYTES],
                                 char why[DECODE_WHY_BYTES]);
