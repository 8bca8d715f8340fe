/* OTLP requests in JSON: what they become is a valid request in protobuf. */
#include "exporter/base/buf.h"
#include "exporter/otlp/decode.h"

#include <assert.h>
#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str json = {(const char *)data, size};
    char skipped[DECODE_WHY_BYTES], why[DECODE_WHY_BYTES] = "";
    BUF_AUTO(request, 1u << 26);
    size_t fields;
    int r = decode_json_request(json, &request, skipped, why);

    assert(r == 0 || ((r == -EBADMSG || r == -EFBIG) && *why));
    assert(strnlen(skipped, sizeof(skipped)) < sizeof(skipped));
    assert(r < 0 || decode_check(buf_str(&request), &fields, why) == 0);
    return 0;
}
