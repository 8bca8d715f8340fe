/* A client of one API server with one identity: REST calls on the loop's HTTP client. On the loop.
 *
 * Credentials are read again every minute, and after a failed TLS handshake or a 401, when the call is sent
 * once more. While they cannot be read, the last good ones stay in use. Nothing else is retried. */
#pragma once

#include "controller/kube/answer.h"
#include "controller/kube/request.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"

struct http;
struct kube;
struct kube_call;
struct kube_reach;
struct server_clock;

enum { KUBE_FAR_MS = 24 * 3600 * 1000 };

/* Runs on the loop once per call, never from inside kube_start(). May free anything, the client included. */
typedef void (*kube_done_fn)(void *arg, struct kube_answer *a);

/* label: "hub" or "cluster", for logs. kubeconfig: a path; NULL: the pod's service account. Both are copied.
 * Credentials that cannot be read now are read later, since OCM mounts the hub's kubeconfig late. */
struct kube *kube_new(struct loop *loop, struct http *http, const char *label, const char *kubeconfig);
/* Cancels its calls. Its watches, queues, leases and events must be freed before. */
struct kube *kube_free(struct kube *k);

/* Why credentials could not be read the last time; NULL when they could. */
const char *kube_credentials_error(const struct kube *k);
/* The namespace of the context, or the pod's own; NULL without. Until the next turn of the loop. */
const char *kube_default_namespace(const struct kube *k);
const char *kube_label_of(const struct kube *k);
struct loop *kube_loop(const struct kube *k);
/* The time of the loop's turn. */
mono_ms kube_now(const struct kube *k);
/* Sets the timer to fire in `in_ms`. */
void kube_timer_move(struct loop *l, struct timer *t, int64_t in_ms);

/* Starts a call. A name that is no path segment ends it with KUBE_INVALID. */
struct kube_call *kube_start(struct kube *k, const struct kube_request *rq, kube_done_fn done, void *arg);
/* Cancels a call; `done` is not called. A write may or may not have happened. Takes NULL, returns NULL. */
struct kube_call *kube_cancel(struct kube_call *c);

/* Parts of the client, for the functions of their own headers. */
struct kube_reach *kube_reach_of(const struct kube *k);
const struct server_clock *kube_server_clock_of(const struct kube *k);
