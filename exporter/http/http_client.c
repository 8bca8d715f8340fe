/* The client: what all its calls share, and where one enters. Loop thread. */
#include "exporter/http/http_internal.h"

enum { MAX_CONNECTIONS = 512 /* idle and busy together; with more, curl closes idle ones */ };

int http_start(struct http_call **ret, struct http *h, const struct http_request *rq, http_done_fn done,
               void *arg)
{
    return http_call_start(ret, h, rq, rq->oauth2 ? &http_token_gate : NULL, done, arg);
}

struct http *http_new(struct loop *loop, const char *user_agent)
{
    struct http *h = xcalloc(1, sizeof(*h));
    const char *proxy = getenv("HTTP_PROXY");

    /* Go programs, such as the reference agent, also read HTTP_PROXY in upper case. curl does not, because in
     * a CGI program it holds a request's `Proxy:` header (httpoxy), so it is ignored under CGI. */
    if (proxy && !getenv("REQUEST_METHOD"))
        (void)setenv("http_proxy", proxy, 0);
    TAILQ_INIT(&h->shares);
    TAILQ_INIT(&h->tokens);
    h->loop = loop;
    h->user_agent = xstrdup(user_agent);
    http_set_budget(h, 0);
    h->multi = loop_multi(loop, http_on_transfer_done);
    (void)curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, (long)MAX_CONNECTIONS);
    return h;
}

struct http *http_free(struct http *h)
{
    if (!h)
        return NULL;
    while (!LIST_EMPTY(&h->calls))
        (void)http_cancel(LIST_FIRST(&h->calls));
    http_tokens_free(h);
    free(h->user_agent);
    free(h);
    return NULL;
}
