/* Owns nothing: each status belongs to its scorer or config. Loop thread. */
#include "controller/hub/observed/last_status.h"

#include "controller/kube/writer.h"

const struct kube_object *last_status_fought(const struct last_status *s)
{
    if (s->status.fight.is_on)
        return &s->status;
    return s->finalizer.fight.is_on ? &s->finalizer : NULL;
}

void last_status_done(struct last_status *s)
{
    kube_object_done(&s->status);
    kube_object_done(&s->finalizer);
    free(s->key);
    json_decref(s->sending);
    json_decref(s->before);
    json_decref(s->sent);
    json_decref(s->result);
    *s = (struct last_status){0};
}
