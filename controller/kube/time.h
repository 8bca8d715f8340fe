/* Times of Kubernetes: metav1.Time in whole seconds, metav1.MicroTime with microseconds. Printed in UTC, read
 * in any zone. Pure. */
#pragma once

#include "exporter/base/clock.h"

enum { KUBE_TIME_BYTES = 32 };

/* "2026-11-21T06:23:01Z", or "2026-11-21T06:23:01.042000Z" */
void kube_time_format(unix_ms t, char out[KUBE_TIME_BYTES]);
void kube_micro_time_format(unix_ms t, char out[KUBE_TIME_BYTES]);
/* Reads a time of RFC 3339, section 5.6, to whole seconds; 0 for NULL and for anything else. */
unix_ms kube_time_parse(const char *text);
