/* Chunks of samples: any stream is read to its end or rejected, and what is written is read back. */
#include "exporter/tsdb/chunk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* The first bytes are the head, the others the stream. */
static void read_any(const uint8_t *data, size_t n)
{
    unsigned char bytes[CHUNK_MAX_BYTES + CHUNK_PAD] = {0};
    struct chunk_head head = {0};
    struct chunk_reader r;
    unsigned samples = 0;
    uint64_t v;
    int64_t t;
    int got;

    if (n < sizeof(head))
        return;
    memcpy(&head, data, sizeof(head));
    n = size_min(n - sizeof(head), CHUNK_MAX_BYTES);
    memcpy(bytes, data + sizeof(head), n);
    head.bits = (uint16_t)(size_min(head.bits, n * 8));
    chunk_reader_init(&r, &head, bytes);
    while ((got = chunk_next(&r, &t, &v)) == 1)
        samples++;
    check(got == 0 ? samples == head.count : got == -EBADMSG && samples < head.count);
}

/* Pairs of a timestamp and a value, as a difference and an XOR of a few bytes. */
static void write_and_read(const uint8_t *data, size_t n)
{
    static struct {
        int64_t t;
        uint64_t v;
    } points[CHUNK_MAX_SAMPLES];
    unsigned char bytes[CHUNK_MAX_BYTES + CHUNK_PAD] = {0};
    struct chunk_codec codec;
    struct chunk_head head;
    struct chunk_reader r;
    unsigned samples = 0;
    int64_t t = 0;
    uint64_t v = 0;

    chunk_codec_init(&codec);
    for (; n >= 4 && samples < CHUNK_MAX_SAMPLES; data += 4, n -= 4) {
        t = (int64_t)((uint64_t)t + ((uint64_t)data[0] << data[1] % 57));
        v ^= (uint64_t)data[2] << data[3] % 57;
        points[samples].t = t;
        points[samples].v = v;
        if (samples++ == 0) {
            chunk_start(&head, &codec, t, v);
            continue;
        }
        struct chunk_bits bits = {.bytes = {bytes[head.bits / 8]}, .n = head.bits % 8};

        chunk_encode(&codec, &bits, t, v);
        memcpy(bytes + head.bits / 8, bits.bytes, (bits.n + 7) / 8);
        head.bits = (uint16_t)(head.bits / 8 * 8 + bits.n);
        head.count++;
    }
    if (samples == 0)
        return;
    chunk_reader_init(&r, &head, bytes);
    for (unsigned i = 0; i < samples; i++)
        check(chunk_next(&r, &t, &v) == 1 && t == points[i].t && v == points[i].v);
    check(chunk_next(&r, &t, &v) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    if (data[0] % 2)
        read_any(data + 1, n - 1);
    else
        write_and_read(data + 1, n - 1);
    return 0;
}
