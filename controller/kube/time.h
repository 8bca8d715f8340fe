/* Times of Kubernetes, in UTC: metav1.Time in whole seconds, metav1.MicroTime with microseconds. Pure. */
#pragma once

#include "exporter/base/clock.h"

enum { KUBE_TIME_BYTES = 32 };

/* "2026-11-21T06:23:01Z", or "2026-11-21T06:23:01.042000Z" */
void kube_time_format(unix_ms t, char out[KUBE_TIME_BYTES]);
void kube_micro_time_format(unix_ms t, char out[KUBE_TIME_BYTES]);
/* Reads either form to whole seconds; 0 for NULL and for anything else. */
unix_ms kube_time_parse(const char *text);
