#include "controller/check/check.h"

#include "controller/check/check_internal.h"
#include "controller/hub/rules/effective.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/base/utf8.h"
#include "exporter/metric/version.h"

#include <errno.h>
#include <stdio.h>

static void check_done(struct check *c)
{
    summary_done(&c->summary);
    free(c->scoring_url);
    free(c->origin);
    free(c->prefix);
    (void)http_free(c->http);
    (void)loop_free(c->loop);
}

/* http://host:8000/performance/config, or the same without /config. */
static int check_split_url(struct check *c)
{
    static const struct str end = STR("/config");
    struct str url = str_trim(str_of(c->options->url)), path;
    CLEANUP(cleanup_free) char *copy = str_dup(url), *origin = NULL;
    size_t host;
    int r = copy ? url_origin(copy, &origin) : -ENOMEM;

    if (r < 0)
        return r;
    if (!*origin || utf8_valid_prefix(url) < url.n)
        return -EINVAL;
    host = (size_t)(strstr(copy, "://") - copy) + 3;
    host += strcspn(copy + host, "/?#");
    path = (struct str){url.p + host, strcspn(copy + host, "?#")};
    while (path.n && path.p[path.n - 1] == '/')
        path.n--;
    if (path.n >= end.n && str_eq((struct str){path.p + path.n - end.n, end.n}, end))
        path.n -= end.n;
    c->origin = str_dup((struct str){url.p, host});
    c->prefix = str_dup(path);
    if (!c->origin || !c->prefix ||
        asprintf(&c->findings->url, "%s%s/config%s", c->origin, c->prefix,
                 copy + host + strcspn(copy + host, "?#")) < 0)
        return -ENOMEM;
    return 0;
}

int check_run(struct findings *ret, const struct check_options *options)
{
    CLEANUP(check_done)
    struct check c = {.options = options, .findings = ret, .tls.ca_file = options->ca_file};
    int r = check_split_url(&c);

    r = r ?: loop_new(&c.loop, &clock_system);
    r = r ?: http_new(&c.http, c.loop, ds_user_agent);
    r = r ?: check_config(&c);
    if (r == 0 && !*ret->unreachable)
        r = check_scoring(&c);
    return r;
}
