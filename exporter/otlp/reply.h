/* The bodies of OTLP responses, in the encoding of the request. */
#ifndef DS_OTLP_REPLY_H
#define DS_OTLP_REPLY_H

#include "exporter/base/buf.h"
#include "exporter/otlp/ingest.h"

enum otlp_encoding { OTLP_PROTOBUF, OTLP_JSON };

/* The media type, a literal. */
const char *otlp_media_type(enum otlp_encoding e);
/* The encoding that a Content-Type names, parameters ignored; false, and JSON, if it is none of OTLP's. */
bool otlp_encoding_of(const char *content_type, enum otlp_encoding *ret);

/* An ExportMetricsServiceResponse, with partial_success if points were rejected. -ENOMEM, -EFBIG. */
MUST_USE int otlp_put_response(enum otlp_encoding e, const struct ingest_outcome *o, struct buf *into);
/* A google.rpc.Status for the HTTP status. -ENOMEM, -EFBIG. */
MUST_USE int otlp_put_status(enum otlp_encoding e, unsigned http_status, struct str message,
                             struct buf *into);

#endif
