#include "exporter/base/httpd.h"
#include "exporter/ui/assets.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <zlib.h>

#include <cmocka.h>

static const char *const pages[] = {"/", "/scorer", NULL};

static struct httpd_reply ask(const struct httpd_route *route, const char *encoding,
                              const char *if_none_match)
{
    const struct httpd_request rq = {.method = "GET",
                                     .path = route->path,
                                     .accept = "",
                                     .accept_encoding = encoding,
                                     .if_none_match = if_none_match};
    struct httpd_reply reply = {0};

    route->fn(route->arg, &rq, &reply);
    return reply;
}

static const struct httpd_route *find(const struct httpd_route *routes, size_t n, const char *path)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(routes[i].path, path) == 0)
            return &routes[i];
    fail_msg("no route %s", path);
    return NULL;
}

static void serves_the_page_at_each_path(void **state)
{
    static const struct {
        const char *path, *type;
    } cases[] = {{"/", "text/html; charset=utf-8"},
                 {"/scorer", "text/html; charset=utf-8"},
                 {"/ui/style.css", "text/css; charset=utf-8"},
                 {"/ui/app.js", "text/javascript; charset=utf-8"},
                 {"/ui/icon.svg", "image/svg+xml"}};
    CLEANUP(cleanup_assets_free) struct assets *a = NULL;
    struct httpd_route routes[ASSETS_MAX_ROUTES];
    size_t n;

    (void)state;
    assert_int_equal(assets_new(&a), 0);
    n = assets_routes(a, pages, routes);
    assert_true(n < ASSETS_MAX_ROUTES); /* or some may be missing */
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct httpd_reply reply = ask(find(routes, n, cases[i].path), "", "");

        assert_string_equal(reply.content_type, cases[i].type);
        assert_string_equal(reply.cache_control, "no-cache");
        assert_non_null(
            strstr(reply.csp, "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'"));
        assert_null(strstr(reply.csp, "unsafe"));
        assert_null(reply.content_encoding);
        assert_int_equal(reply.n_parts, 1);
        assert_true(reply.parts[0].iov_len > 50);
    }
}

static void compresses_for_clients_that_take_gzip(void **state)
{
    CLEANUP(cleanup_assets_free) struct assets *a = NULL;
    CLEANUP(cleanup_free) char *text = malloc(1 << 20);
    struct httpd_route routes[ASSETS_MAX_ROUTES];
    struct httpd_reply plain, gzip;
    z_stream z = {0};

    (void)state;
    assert_int_equal(assets_new(&a), 0);
    (void)assets_routes(a, pages, routes);
    plain = ask(&routes[0], "", "");
    gzip = ask(&routes[0], "gzip", "");
    assert_string_equal(gzip.content_encoding, "gzip");
    assert_string_equal(gzip.vary, "Accept-Encoding");
    assert_string_not_equal(gzip.etag, plain.etag);
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    z.next_in = gzip.parts[0].iov_base;
    z.avail_in = (uInt)gzip.parts[0].iov_len;
    z.next_out = (Bytef *)text;
    z.avail_out = 1 << 20;
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.total_out, plain.parts[0].iov_len);
    assert_memory_equal(text, plain.parts[0].iov_base, z.total_out);
    (void)inflateEnd(&z);
}

static void answers_304_to_a_client_that_has_the_file(void **state)
{
    CLEANUP(cleanup_assets_free) struct assets *a = NULL;
    struct httpd_route routes[ASSETS_MAX_ROUTES];
    const char *tag, *gzip;
    char several[300];

    (void)state;
    assert_int_equal(assets_new(&a), 0);
    (void)assets_routes(a, pages, routes);
    tag = ask(&routes[0], "", "").etag;
    gzip = ask(&routes[0], "gzip", "").etag;
    assert_int_equal(ask(&routes[0], "", tag).status, 304);
    assert_int_equal(ask(&routes[0], "", tag).n_parts, 0);
    assert_int_equal(ask(&routes[0], "", "*").status, 304);
    (void)snprintf(several, sizeof(several), "\"x\", W/%s", tag);
    assert_int_equal(ask(&routes[0], "", several).status, 304);
    assert_int_equal(ask(&routes[0], "", gzip).status, 0);
    assert_int_equal(ask(&routes[0], "gzip", gzip).status, 304);
    assert_int_equal(ask(&routes[0], "", "\"x\"").status, 0);
    (void)snprintf(several, sizeof(several), "%sx", tag);
    assert_int_equal(ask(&routes[0], "", several).status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_the_page_at_each_path),
        cmocka_unit_test(compresses_for_clients_that_take_gzip),
        cmocka_unit_test(answers_304_to_a_client_that_has_the_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
