/* Reads a web configuration file and the files that it names. */
#include "exporter/base/buf.h"
#include "exporter/base/file.h"
#include "exporter/base/httpd_tls.h"
#include "exporter/base/problems.h"
#include "exporter/base/str.h"
#include "exporter/web/web_file.h"

#include <errno.h>

int web_file_read(struct web_file **ret, const char *path, struct problems *p)
{
    CLEANUP(cleanup_free) char *dir = NULL;
    const char *slash = strrchr(path, '/');
    BUF_AUTO(text, WEB_FILE_MAX_BYTES);
    int r = file_read(path, &text);

    if (r == -ENOMEM)
        return r;
    if (r < 0) {
        problems_add(p, PROBLEM_ERROR, 0, 0, "%s", r == -EFBIG ? "larger than 1 MiB" : strerror(-r));
        return p->out_of_memory ? -ENOMEM : -EINVAL;
    }
    dir = slash ? str_dup((struct str){path, (size_t)(slash - path)}) : strdup(".");
    r = dir ? web_file_parse(ret, buf_str(&text), dir, p) : -ENOMEM;
    if (text.n)
        explicit_bzero(text.p, text.n);
    return r;
}

/* Whether the error is about this field: it names client_ca_file for client_ca, too. */
static bool tls_error_is_about(struct str field, const char *key)
{
    struct str k = str_of(key);

    return str_starts(field, k) &&
           (field.n == k.n || str_eq((struct str){field.p + k.n, field.n - k.n}, STR("_file")));
}

/* The error begins with the name of the field, up to a colon. */
static void tls_add_problem(const struct web_file *f, const char *why, struct problems *p)
{
    struct str field = {why, strcspn(why, ":[")};
    unsigned line = 0, column = 0;

    for (size_t i = 0; i < f->n_tls_places; i++)
        if (tls_error_is_about(field, f->tls_places[i].key)) {
            line = f->tls_places[i].line;
            column = f->tls_places[i].column;
        }
    problems_add(p, PROBLEM_ERROR, line, column, "tls_server_config.%s", why);
}

int web_file_set_tls(const struct web_file *f, struct httpd_tls **tls, struct problems *p)
{
    CLEANUP(cleanup_free) char *why = NULL;
    int r = *tls ? httpd_tls_set(*tls, &f->tls, &why) : httpd_tls_new(tls, &f->tls, &why);

    if (r == 0)
        return 0;
    if (r == -ENOMEM || !why)
        return -ENOMEM;
    tls_add_problem(f, why, p);
    return -EINVAL;
}
