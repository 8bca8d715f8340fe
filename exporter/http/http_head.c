/* The head of an answer: the headers that the call itself acts on. A redirect is judged at its end. Owns
 * nothing. curl's callback, on the loop. */
#include "exporter/http/http_internal.h"
#include "exporter/http/redirect.h"

#include <stdio.h>
#include <time.h>

enum {
    MAX_HEADER_BYTES = 256 << 10,
    BODY_MS = 2000, /* status_decides: to read the body */
    BODY_MS_2XX = 200,
};

/* A redirect is judged once its head is complete. It is either followed, within the origin of the request, or
 * ends the call: elsewhere the series would reach a server that nobody configured, and its answer the status
 * page. False if it ends the call. */
static bool judge_redirect(struct http_call *c)
{
    CLEANUP(cleanup_curl_url_cleanup) CURLU *from = http_last_url(c);
    BUF_AUTO(why, HTTP_REASON_MAX_BYTES);
    enum redirect_verdict verdict;

    if (c->location_state == LOCATION_SEVERAL) {
        http_call_fail(c, CAUSE_LOCATION_SEVERAL, "redirect with more than one Location");
        return false;
    }
    if (c->location_state == LOCATION_FOLDED) {
        http_call_fail(c, CAUSE_LOCATION_INVALID,
                       "redirect with an invalid Location: it goes on in another line");
        return false;
    }
    if (c->hops.n == HTTP_MAX_REDIRECTS) {
        http_call_fail(c, CAUSE_REDIRECTS, "more than %d redirects", HTTP_MAX_REDIRECTS);
        return false;
    }
    if (!from) {
        http_call_fail(c, CAUSE_REDIRECT_URL, "redirect from a URL that cannot be parsed");
        return false;
    }
    verdict = redirect_judge(&c->next_url, buf_str(&c->location), from, &why);
    if (verdict == REDIRECT_FOLLOW)
        return true;
    http_call_fail_with(c, verdict == REDIRECT_ELSEWHERE ? CAUSE_ELSEWHERE : CAUSE_LOCATION_INVALID, &why);
    return false;
}

static void on_content_encoding(struct http_call *c, struct str value)
{
    bool is_known = str_eq_nocase(value, STR("gzip")) || str_eq_nocase(value, STR("x-gzip")) ||
                    str_eq_nocase(value, STR("deflate"));

    if (value.n == 0 || str_eq_nocase(value, STR("identity")) || c->rq.status_decides)
        return;
    if (!is_known || c->encoded || (c->rq.on_data && http_call_status(c) / 100 == 2))
        (void)snprintf(c->encoding, sizeof(c->encoding), "%.*s", STR_ARG(value));
    c->encoded = true;
}

static bool is_redirect(const struct http_call *c, long status)
{
    return !c->rq.no_redirects && c->location_state != LOCATION_NONE &&
           redirect_is_followed(status, strcmp(http_method(&c->rq), "GET") == 0);
}

/* False if the call ends here. */
static bool on_headers_end(struct http_call *c)
{
    long status = http_call_status(c);

    if (is_redirect(c, status))
        return judge_redirect(c);
    if (c->rq.status_decides && !c->decided && status >= 200) {
        c->decided = true;
        loop_timer_set(c->http->loop, &c->idle,
                       mono_add(loop_now(c->http->loop), status <= 299 ? BODY_MS_2XX : BODY_MS));
    }
    if (c->rq.on_data && status / 100 == 2) {
        c->streaming = c->first_piece_due = true;
        c->answer.body.max = HTTP_WINDOW_BYTES + CURL_MAX_READ_SIZE;
        http_call_line_up(c);
    }
    return true;
}

/* Of each answer of a redirect chain, each interim answer, and that of a proxy to CONNECT. */
static void head_begin(struct http_call *c)
{
    c->in_head = true;
    c->in_location = false;
    c->retry_after_is_bad = false;
    c->encoded = false;
    c->encoding[0] = '\0';
    c->location_state = LOCATION_NONE;
}

/* `value` as it came: redirect_judge() decides what may be trimmed. */
static void on_location(struct http_call *c, struct str value)
{
    c->in_location = true;
    if (c->location_state != LOCATION_NONE) {
        c->location_state = LOCATION_SEVERAL;
        return;
    }
    c->location_state = LOCATION_ONE;
    c->location.max = MAX_HEADER_BYTES;
    buf_clear(&c->location);
    buf_put_str(&c->location, value);
    if (buf_failed(&c->location) < 0)
        memory_exhausted(value.n);
}

/* RFC 9110, sections 5.6.7 and 10.2.3: seconds, or a date in one of three forms. */
static bool is_retry_after(struct str value)
{
    static const char *const dates[] = {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT",
                                        "%a %b %e %H:%M:%S %Y"};
    char text[64];
    uint64_t seconds;

    if (str_to_u64(value, &seconds))
        return true;
    if (value.n >= sizeof(text))
        return false;
    (void)snprintf(text, sizeof(text), "%.*s", STR_ARG(value));
    for (size_t i = 0; i < ARRAY_SIZE(dates); i++) {
        struct tm date = {0};
        const char *end = strptime(text, dates[i], &date);

        if (end && !*end)
            return true;
    }
    return false;
}

static void on_header_line(struct http_call *c, struct str line)
{
    const char *colon = line.n ? memchr(line.p, ':', line.n) : NULL;
    struct str name, value;

    if (line.p[0] == ' ' || line.p[0] == '\t') {
        if (c->in_location)
            c->location_state = LOCATION_FOLDED;
        return;
    }
    c->in_location = false;
    if (!colon)
        return;
    name = (struct str){line.p, (size_t)(colon - line.p)};
    value = (struct str){colon + 1, line.n - name.n - 1};
    if (str_eq_nocase(name, STR("Location")))
        on_location(c, value);
    value = str_trim(value);
    if (c->rq.on_header)
        c->rq.on_header(c->arg, name, value);
    if (str_eq_nocase(name, STR("Retry-After")))
        c->retry_after_is_bad = !is_retry_after(value);
    if (str_eq_nocase(name, STR("Content-Encoding")))
        on_content_encoding(c, value);
}

static struct str without_line_end(struct str line)
{
    if (line.n && line.p[line.n - 1] == '\n')
        line.n--;
    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    return line;
}

/* Also gets the status line, the empty line at the end of a head, and trailers, which count for nothing. */
size_t http_on_header(char *p, size_t size, size_t n, void *arg)
{
    struct http_call *c = arg;
    struct str line = without_line_end((struct str){p, size * n});
    bool is_empty = line.n == 0 || line.p[0] == '\r'; /* as libcurl has it */

    c->header_bytes += size * n;
    c->last_byte = loop_now(c->http->loop);
    if (c->header_bytes > MAX_HEADER_BYTES) {
        http_call_fail(c, CAUSE_HEADERS_LIMIT, "response headers exceed the limit of %d bytes",
                       MAX_HEADER_BYTES);
        return 0;
    }
    if (!c->in_head && str_starts(line, STR("HTTP/"))) {
        head_begin(c);
    } else if (c->in_head && is_empty) {
        c->in_head = false;
        if (!on_headers_end(c))
            return 0;
    } else if (c->in_head) {
        on_header_line(c, line);
    }
    return size * n;
}
