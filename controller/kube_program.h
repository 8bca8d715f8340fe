/* What the commands that serve a Kubernetes API share, from the first signal to the last. */
#ifndef DS_CONTROLLER_KUBE_PROGRAM_H
#define DS_CONTROLLER_KUBE_PROGRAM_H

#include "controller/kube/client.h"
#include "controller/signals.h"
#include "exporter/base/http.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"

struct kube_program {
    struct loop *loop;
    struct http *http;
    struct kube *kube;
    struct metrics *metrics;
    struct signals signals;
    bool has_signals;
};

/* label and kubeconfig: as for kube_new(). Without handlers->stop the loop stops at once. A negative errno,
 * and the log says why. */
MUST_USE int kube_program_start(struct kube_program *p, const char *label, const char *kubeconfig,
                                const struct signals_handlers *handlers);
/* Runs the loop until a signal stops it. Negative errno. */
MUST_USE int kube_program_run(struct kube_program *p);
/* The exit status for what kube_program_run() returned; the log says that it has ended. */
int kube_program_status(int r);
/* Frees all, after what uses it; also after a start that failed. */
void kube_program_done(struct kube_program *p);

#endif
