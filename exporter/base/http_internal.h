/* What the files of the HTTP client share; nothing else includes it. */
#ifndef DS_BASE_HTTP_INTERNAL_H
#define DS_BASE_HTTP_INTERNAL_H

#include "exporter/base/clock.h"
#include "exporter/base/http.h"
#include "exporter/base/loop.h"

struct http {
    struct loop *loop;
    CURLM *multi;
    char *user_agent;
    const char *ca_file, *ca_dir; /* from the environment; NULL unless one of them is set */
    struct http_call *calls;      /* under way */
    CURL **idle;                  /* handles to use again, already reset */
    size_t n_idle;
};

struct http_call {
    struct http *http;
    struct http_call *prev, *next;
    CURL *easy;
    http_done_fn done;
    void *arg;
    bool finishing; /* `done` is running: too late to cancel */
    int64_t timeout_ms;
    struct http_answer answer;
    /* The request */
    bool head;
    char content_type[160];
    struct curl_slist headers; /* Content-Type, in front of what all calls send */
    struct curl_slist *extra;  /* the caller's own, between the two; curl_slist_free_all() takes it apart */
    struct curl_slist *connect_to;
    bool cut_answer;
    bool cut; /* it was: the rest of the body was not waited for */
    bool accept_gzip;
    void (*on_header)(void *arg, struct str name, struct str value);
    void (*on_data)(void *arg, struct str piece);
    int64_t idle_ms;
    char *joined; /* a small body in one piece */
    uint64_t body_bytes;
    size_t part, offset; /* read so far: all before this byte of this part */
    /* The answer's headers */
    size_t header_bytes;
    uint64_t announced; /* Content-Length; 0 without */
    bool encoded;       /* Content-Encoding: announced says nothing about the decoded size */
    bool in_headers;    /* a status line came, and not yet the end of its headers */
    /* A streamed answer: answer.body is what has come and was not passed on */
    bool streaming, paused, stream_begun; /* the last: not yet said to on_data */
    struct timer deliver, idle;
    mono_ms last_byte;
    bool *gone; /* while on_data runs: set when it ended the call */
    char curl_error[CURL_ERROR_SIZE];
    char refused[64]; /* public_only: the address; empty while none was refused */
    size_t n_parts;
    struct str parts[];
};

/* Sets all options of a fresh or reset handle for the call. -ENOMEM, -EINVAL. */
MUST_USE int http_set_up(struct http_call *c, CURL *easy, const struct http_request *rq);
/* Frees what http_set_up() made, once the handle is reset or gone. */
void http_tear_down(struct http_call *c);

/* curl's callbacks; arg is the call. */
size_t http_on_read(char *to, size_t size, size_t n, void *arg);
int http_on_seek(void *arg, curl_off_t offset, int origin);
size_t http_on_header(char *p, size_t size, size_t n, void *arg);
size_t http_on_body(char *p, size_t size, size_t n, void *arg);

/* public_only (http_public.c). -ENOMEM. */
MUST_USE int http_set_public_only(struct http_call *c, CURL *easy);
/* Fills the answer, and is true, when the call ended because an address was refused. */
bool http_explain_refused(struct http_call *c, CURLcode code);

/* Fills error and reason of the call's answer from what curl says, unless a callback has set them already. */
void http_explain(struct http_call *c, CURLcode code);

/* Takes the call out of the client and runs `done` with what curl says, unless an error is set already. */
void http_finish(struct http_call *c, CURLcode code);

/* Streaming and the idle timeout (http_stream.c). */
MUST_USE int http_stream_start(struct http_call *c);
/* The headers are in. -ENOMEM. */
MUST_USE int http_stream_headers(struct http_call *c);
/* What http_on_body() is to return. */
size_t http_stream_in(struct http_call *c, const char *p, size_t n);
/* Passes on what has come. False when on_data ended the call. */
bool http_stream_end(struct http_call *c);
void http_stream_stop(struct http_call *c);

#endif
