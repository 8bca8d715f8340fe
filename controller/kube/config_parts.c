/* The parts that both kinds of configs are made of. */
#include "controller/kube/config_internal.h"

#include "exporter/base/file.h"
#include "exporter/base/secret.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>

int kube_config_new(struct kube_config **ret)
{
    struct kube_config *c = calloc(1, sizeof(*c));

    if (!c)
        return -ENOMEM;
    c->refs = 1;
    *ret = c;
    return 0;
}

struct kube_config *kube_config_ref(struct kube_config *c)
{
    c->refs++;
    return c;
}

struct kube_config *kube_config_unref(struct kube_config *c)
{
    if (!c || --c->refs > 0)
        return NULL;
    secret_done(&c->ca);
    secret_done(&c->cert);
    secret_done(&c->key);
    secret_done(&c->token);
    (void)secret_free(c->password);
    free(c->user);
    free(c->server);
    free(c->namespace);
    free(c->tls_server_name);
    free(c->proxy);
    free(c);
    return NULL;
}

int kube_config_take_pem(struct buf *ret, const char *what, struct buf *b, char why[512])
{
    if (!b->n || !memmem(b->p, b->n, "-----BEGIN ", 11)) {
        (void)snprintf(why, 512, "%s: expected PEM", what);
        return -EINVAL;
    }
    *ret = buf_take(b);
    return 0;
}

int kube_config_take_token(struct buf *ret, const char *what, struct buf *b, char why[512])
{
    struct str s;

    if (secret_token(buf_str(b), &s)) {
        (void)snprintf(why, 512, "%s: expected a token of printable ASCII without spaces", what);
        return -EINVAL;
    }
    memmove(b->p, s.p, s.n);
    b->n = s.n;
    *ret = buf_take(b);
    return 0;
}

int kube_read_file(const char *what, const char *path, struct buf *into, char why[512])
{
    int r = file_read(path, into);

    if (r < 0)
        (void)snprintf(why, 512, "%s: cannot read file %.200s: %s", what, path, strerror(-r));
    return r;
}

static bool url_has_part(CURLU *u, CURLUPart part)
{
    char *text = NULL;
    bool there = curl_url_get(u, part, &text, 0) == CURLUE_OK;

    curl_free(text);
    return there;
}

static const char *config_server_fault(const char *url)
{
    CURLU *u = curl_url();
    const char *fault = NULL;

    if (!u)
        return "out of memory";
    if ((strncasecmp(url, "http://", 7) != 0 && strncasecmp(url, "https://", 8) != 0) ||
        curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK)
        fault = "expected a URL like https://host:port";
    else if (url_has_part(u, CURLUPART_USER) || url_has_part(u, CURLUPART_PASSWORD))
        fault = "the URL must not contain a user or password";
    else if (url_has_part(u, CURLUPART_QUERY) || url_has_part(u, CURLUPART_FRAGMENT))
        fault = "the URL must not have a query or fragment";
    curl_url_cleanup(u);
    return fault;
}

int kube_config_set_server(struct kube_config *c, const char *what, struct str s, char why[512])
{
    CLEANUP(cleanup_free) char *url = str_dup(s);
    const char *fault = url ? config_server_fault(url) : NULL;

    if (!url)
        return -ENOMEM;
    if (fault) {
        (void)snprintf(why, 512, "%s: %s", what, fault);
        return -EINVAL;
    }
    while (s.n && s.p[s.n - 1] == '/')
        s.n--;
    free(c->server);
    c->server = str_dup(s);
    return c->server ? 0 : -ENOMEM;
}
