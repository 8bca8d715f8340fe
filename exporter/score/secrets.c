#include "exporter/score/secrets.h"

#include "exporter/base/file.h"

#include <errno.h>
#include <stdio.h>

enum { TOKEN_MAX_BYTES = 64 << 10 };

static int read_file(struct secrets *s, const char *name, const char *key, struct buf *into)
{
    struct secret_files *f = CONTAINER_OF(s, struct secret_files, secrets);
    BUF_AUTO(path, 4096);
    int r;

    if (!f->dir)
        return -ENOENT;
    r = buf_printf(&path, "%s/%s/%s", f->dir, name, key);
    if (r == 0)
        r = buf_putc(&path, '\0');
    return r == 0 ? file_read(path.p, into) : r;
}

void secret_files_init(struct secret_files *f, const char *dir)
{
    *f = (struct secret_files){.secrets = {.read = read_file}, .dir = dir};
}

static bool is_token(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < 0x20 || s.p[i] > 0x7e)
            return false;
    return s.n > 0;
}

int secrets_token(struct secrets *s, const char *name, const char *key, struct buf *into, char why[256])
{
    BUF_AUTO(value, TOKEN_MAX_BYTES);
    struct str token;
    int r = s->read(s, name, key, &value);

    if (r < 0) {
        (void)snprintf(why, 256, "secret \"%.80s\", key \"%.80s\": %s", name, key,
                       r == -ENOENT ? "not found" : strerror(-r));
        return r;
    }
    token = str_trim(buf_str(&value));
    if (!is_token(token)) {
        (void)snprintf(why, 256, "secret \"%.80s\", key \"%.80s\": %s", name, key,
                       token.n ? "not a token: it has characters that a header may not hold" : "empty");
        r = -EINVAL;
    } else {
        r = buf_put_str(into, token);
        if (r < 0)
            (void)snprintf(why, 256, "secret \"%.80s\", key \"%.80s\": %s", name, key, strerror(-r));
    }
    if (value.n)
        explicit_bzero(value.p, value.n);
    return r;
}
