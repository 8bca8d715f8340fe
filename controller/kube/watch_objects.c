/* The known versions of a watch's objects, and which changes to report. */
#include "controller/kube/watch_internal.h"

#include <errno.h>

static bool version_is_number(const char *s)
{
    return *s && s[strspn(s, "0123456789")] == '\0';
}

bool kube_version_newer(const char *a, const char *b)
{
    size_t na, nb;

    if (!version_is_number(a) || !version_is_number(b))
        return strcmp(a, b) != 0;
    a += strspn(a, "0");
    b += strspn(b, "0");
    na = strlen(a);
    nb = strlen(b);
    return na != nb ? na > nb : strcmp(a, b) > 0;
}

static bool object_is_usable(const json_t *object)
{
    const char *version = kube_version(object);

    return *kube_name(object) && *version && strlen(version) < VERSION_BYTES;
}

static int object_key(const char *namespace, const char *name, struct buf *key)
{
    return buf_printf(key, "%s/%s", namespace, name) ?: buf_putc(key, '\0');
}

static int object_set_version(json_t *versions, const char *key, const char *version)
{
    return json_object_set_new(versions, key, json_string(version)) == 0 ? 0 : -ENOMEM;
}

int kube_watch_set(struct kube_watch *w, json_t *object, bool listed)
{
    const char *version = kube_version(object), *before;
    BUF_AUTO(key, 4096);
    int r = object_is_usable(object) ? object_key(kube_namespace(object), kube_name(object), &key) : -EINVAL;

    if (r < 0)
        return r == -EFBIG ? -EINVAL : r;
    if (listed && object_set_version(w->listed, key.p, version) < 0)
        return -ENOMEM;
    before = kube_str(w->known, key.p, NULL);
    /* A list from the store is right even if versions go back, as after a restore from a backup. */
    if (before && (listed ? strcmp(version, before) == 0 : !kube_version_newer(version, before)))
        return 0;
    if (object_set_version(w->known, key.p, version) < 0)
        return -ENOMEM;
    if (w->o.on_set)
        w->o.on_set(w->o.arg, object);
    return 0;
}

int kube_watch_delete(struct kube_watch *w, const json_t *object)
{
    BUF_AUTO(key, 4096);
    int r = object_is_usable(object) ? object_key(kube_namespace(object), kube_name(object), &key) : -EINVAL;
    const char *before;

    if (r < 0)
        return r == -EFBIG ? -EINVAL : r;
    before = kube_str(w->known, key.p, NULL);
    /* An object created anew since then stays. */
    if (!before || kube_version_newer(before, kube_version(object)))
        return 0;
    (void)json_object_del(w->known, key.p);
    if (w->o.on_delete)
        w->o.on_delete(w->o.arg, kube_namespace(object), kube_name(object));
    return 0;
}

void kube_watch_sweep(struct kube_watch *w)
{
    json_auto_t *before = w->known;
    const char *key;
    json_t *version;

    w->known = TAKE_PTR(w->listed);
    json_object_foreach(before, key, version)
    {
        const char *slash = strchr(key, '/');
        BUF_AUTO(namespace, 4096);

        if (w->dead || kube_str(w->known, key, NULL) || !w->o.on_delete)
            continue;
        if (buf_put(&namespace, key, (size_t)(slash - key)) < 0 || buf_putc(&namespace, '\0') < 0) {
            /* Out of memory: the object stays known until the next list. */
            (void)json_object_set(w->known, key, version);
            continue;
        }
        w->o.on_delete(w->o.arg, namespace.p, slash + 1);
    }
}

bool kube_watch_advance(struct kube_watch *w, const char *version)
{
    size_t n = strlen(version);

    if (n == 0 || n >= VERSION_BYTES)
        return false;
    if (!w->version[0] || kube_version_newer(version, w->version))
        memcpy(w->version, version, n + 1);
    return true;
}

bool kube_watch_has(const struct kube_watch *w, const char *namespace, const char *name)
{
    BUF_AUTO(key, 4096);

    return object_key(cstr(namespace), name, &key) == 0 && kube_str(w->known, key.p, NULL);
}

size_t kube_watch_objects(const struct kube_watch *w)
{
    return json_object_size(w->known);
}
