/* A spool's segment, and what its records hold: reading ends, goes forward only, and stays inside. */
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "remotewrite/body.h"
#include "remotewrite/config.h"
#include "remotewrite/format.h"
#include "remotewrite/labels.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at_positions(struct str bytes)
{
    struct position_reader r;
    struct position_lane l;

    if (!position_open(&r, bytes))
        return;
    while (position_next(&r, &l))
        assert(l.name.n == 0 || (l.name.p >= bytes.p && l.name.p + l.name.n <= bytes.p + bytes.n));
    assert(r.lanes == 0);
}

static void look_at_payload(struct str payload)
{
    BUF_AUTO(text, 1 << 20);
    BUF_AUTO(body, 1 << 20);
    BUF_AUTO(message, 1 << 20);
    CLEANUP(cleanup_free) struct str *series = NULL;
    size_t n;

    /* A block of a few bytes may stand for many megabytes. */
    if (payload.n == 0 || (unsigned char)payload.p[0] > 0x7f)
        return;
    n = text.n;
    if (body_print(payload, &text) == 0)
        assert(text.n >= n);
    if (body_unpack(payload, &message) < 0 || body_series(buf_str(&message), &series, &n) < 0)
        return;
    for (enum rw_form f = RW_FORM_V1; f < RW_FORMS; f++)
        if (body_make(f, series, n, NULL, &body) < 0)
            assert(body.n <= body.max);
}

static void look_at_lost(struct str bytes, const struct segment_item *item)
{
    struct record_head h;
    size_t end = item->at + item->n;

    for (size_t at = item->at, before = at; segment_next_lost(bytes, &at, end, &h); before = at) {
        assert(at > before && at <= end);
        assert(h.lane.n == 0 || (h.lane.p >= bytes.p && h.lane.p + h.lane.n <= bytes.p + end));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str bytes = {(const char *)data, size};
    CLEANUP(cleanup_label_bytes_free) struct label_bytes *labels = xcalloc(1, sizeof(*labels));
    struct segment_reader reader;
    struct segment_item item;
    enum segment_found what;
    size_t end = 0;

    buf_init(&labels->bytes, LABEL_BYTES_MAX);
    reader = (struct segment_reader){.bytes = bytes};
    while ((what = segment_next(&reader, &item)) != SEGMENT_END) {
        assert(item.at >= end && item.n > 0 && item.at + item.n <= size);
        end = item.at + item.n;
        if (what == SEGMENT_RECORD) {
            look_at_payload(item.payload);
            (void)!body_labels(item.payload, labels);
        } else {
            look_at_lost(bytes, &item);
        }
    }
    (void)segment_has_other_version(bytes);
    look_at_payload(bytes);
    look_at_positions(bytes);
    return 0;
}
