/* Times as Kubernetes writes them: metav1.Time in whole seconds, metav1.MicroTime with microseconds, both
 * in UTC. */
#ifndef DS_KUBE_TIME_H
#define DS_KUBE_TIME_H

#include "exporter/base/clock.h"

enum { KUBE_TIME_BYTES = 32 };

/* "2026-11-21T06:23:01Z" */
void kube_time_format(unix_ms t, char out[KUBE_TIME_BYTES]);
/* "2026-11-21T06:23:01.042000Z" */
void kube_micro_time_format(unix_ms t, char out[KUBE_TIME_BYTES]);
/* Reads either form to whole seconds; 0 for NULL and for anything else. */
unix_ms kube_time_parse(const char *text);

#endif
