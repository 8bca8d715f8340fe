/* Secrets in files, as a Kubernetes volume mounts them. Each read opens the file anew, since the volume
 * may have been updated. Owns nothing. */
#include "exporter/score/secret_files.h"

#include "exporter/base/alloc.h"
#include "exporter/base/file.h"

#include <errno.h>

static int secret_file_read(struct secrets *s, const char *name, const char *key, struct buf *into,
                            const char **ret_why)
{
    const struct secret_files *f = CONTAINER_OF(s, struct secret_files, secrets);
    CLEANUP(cleanup_free) char *path = f->dir ? xasprintf("%s/%s/%s", f->dir, name, key) : NULL;

    (void)ret_why;
    return path ? file_read(path, into) : -ENOENT;
}

static int secret_file_look(struct secrets *s, const char *name, bool *ret_trusts_ca, const char **ret_why)
{
    const struct secret_files *f = CONTAINER_OF(s, struct secret_files, secrets);
    CLEANUP(cleanup_free) char *path = f->dir ? xasprintf("%s/%s/namespace", f->dir, name) : NULL;

    (void)ret_why;
    if (!path)
        return -ENOENT;
    *ret_trusts_ca = access(path, F_OK) < 0;
    *strrchr(path, '/') = '\0';
    return access(path, F_OK) < 0 ? -errno : 0;
}

void secret_files_init(struct secret_files *f, const char *dir)
{
    *f = (struct secret_files){.secrets = {.look = secret_file_look, .read = secret_file_read}, .dir = dir};
}
