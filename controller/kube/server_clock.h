/* The API server's clock. Part of the client; on the loop.
 *
 * Our own may be minutes away from it, while those who judge validUntil have theirs beside the API server.
 * So what is written there is in its time, by the `Date` of its answers. That has whole seconds: an offset
 * below 5 s counts as none, and it changes by more than 5 s only, so that nothing is written because of
 * it. */
#pragma once

#include "exporter/base/clock.h"
#include "exporter/base/str.h"

#include <stdbool.h>

struct kube;

struct server_clock {
    int64_t offset_ms; /* of the API server's clock to ours */
};

enum { KUBE_CLOCK_STEP_MS = 5 * 1000, KUBE_CLOCK_SKEWED_MS = 30 * 1000 };

/* The time by the API server's clock; by ours until it has answered. */
unix_ms kube_wall(const struct kube *k);
/* How far its clock is ahead of ours; negative if it is behind. */
int64_t kube_clock_offset_ms(const struct kube *k);
/* Whether the offset is worth telling. */
bool kube_clock_is_skewed(const struct kube *k);
/* The offset after an answer with this `Date`, between these two of our own times. An offset that the answer
 * allows stays, and so it does for a Date that is none. Pure. */
int64_t kube_clock_offset_by(int64_t offset_ms, struct str date, unix_ms sent, unix_ms received);

/* Takes the `Date` of an answer, between these two of our own times. label: for the log. For the client. */
void server_clock_note(struct server_clock *c, struct str date, unix_ms sent, unix_ms received,
                       const char *label);
