/* OTLP requests in JSON: what they become is a valid request in protobuf. */
#include "exporter/base/buf.h"
#include "exporter/otlp/decode.h"

#include <assert.h>
#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str json = {(const char *)data, size};
    char why[DECODE_WHY_BYTES] = "";
    BUF_AUTO(request, 1u << 26);
    size_t fields;
    int r = decode_json(json, &otlp__request__descriptor, &request, why);

    assert(r == 0 || ((r == -EBADMSG || r == -EFBIG) && *why));
    assert(r < 0 || decode_check(buf_str(&request), &fields, why) == 0);
    return 0;
}
