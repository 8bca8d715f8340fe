/* The two files of active series: reading ends, and gives blocks whose labels can be asked for, whatever
 * they hold. The first two bytes say how long the first file is. */
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "remotewrite/active.h"
#include "remotewrite/body.h"
#include "remotewrite/format.h"
#include "remotewrite/frame.h"
#include "remotewrite/labels.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at_set(void *arg, struct str lane, struct frames *frames)
{
    (void)arg;
    (void)lane;
    assert(frames->n > 0 && lane.n <= LANE_NAME_MAX);
    for (size_t i = 0; i < frames->n; i++) {
        CLEANUP(cleanup_label_bytes_free) struct label_bytes *labels = xcalloc(1, sizeof(*labels));
        const struct frame *f = frames->list[i];

        assert(f->block && !f->value_at && !f->series);
        buf_init(&labels->bytes, LABEL_BYTES_MAX);
        if (body_labels((struct str){f->block, f->block_n}, labels) == 0)
            assert(labels->n == 0 || labels->at[labels->n] == labels->bytes.n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str sets, changes;
    uint64_t next;

    if (size < 2)
        return 0;
    sets = (struct str){(const char *)data + 2, size_min(size - 2, get_le((const char *)data, 2))};
    changes = (struct str){sets.p + sets.n, size - 2 - sets.n};
    next = active_read(sets, changes, look_at_set, NULL);
    assert(next >= 1ull << 32);
    (void)next;
    return 0;
}
