#include "exporter/score/secrets.h"

#include "exporter/base/file.h"
#include "exporter/base/secret.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <stdio.h>

enum { TOKEN_MAX_BYTES = 64 << 10 };

static int secret_file_read(struct secrets *s, const char *name, const char *key, struct buf *into,
                            const char **ret_why)
{
    const struct secret_files *f = CONTAINER_OF(s, struct secret_files, secrets);
    BUF_AUTO(path, 4096);
    int r;

    (void)ret_why;
    if (!f->dir)
        return -ENOENT;
    r = buf_printf(&path, "%s/%s/%s", f->dir, name, key) ?: buf_putc(&path, '\0');
    return r == 0 ? file_read(path.p, into) : r;
}

void secret_files_init(struct secret_files *f, const char *dir)
{
    *f = (struct secret_files){.secrets = {.read = secret_file_read}, .dir = dir};
}

int secrets_token(struct secrets *s, const char *name, const char *key, struct buf *into, char why[256])
{
    SECRET_AUTO(value, TOKEN_MAX_BYTES);
    const char *problem = NULL;
    struct str token = {0};
    int r = s->read(s, name, key, &value, &problem);

    if (r == 0) {
        problem = secret_token(buf_str(&value), &token);
        r = problem ? -EINVAL : buf_put_str(into, token);
    }
    if (r < 0 && !problem)
        problem = r == -ENOENT ? "not found" : strerror(-r);
    if (problem) {
        int n = snprintf(why, 256, "secret \"%.80s\", key \"%.80s\": ", name, key);
        text_line(why + n, 256 - (size_t)n, str_of(problem));
    }
    return r;
}
