/* A scripted HTTP/1.1 server on raw sockets with a thread of its own, which can also break the protocol.
 * It keeps the requests for the test.
 *
 *     struct fake_server *s = fake_new();
 *     fake_push(s, (struct fake_answer){.status = 503, .headers = "Retry-After: 7\r\n"});
 *     fake_push(s, (struct fake_answer){.body = "{}"});
 *     ... ask fake_url(s, "/x") twice ...
 *     assert_string_equal(fake_request(s, 1)->method, "POST");
 *     fake_free(s);
 *
 * When no answer is left it sends that of fake_default(), initially 200 with the body "{}". */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct fake_server;

enum fake_mode {
    FAKE_PLAIN,     /* Content-Length */
    FAKE_CHUNKED,   /* Transfer-Encoding: chunked, one byte of body in each chunk, one byte a write */
    FAKE_GZIP,      /* Content-Encoding: gzip */
    FAKE_RAW,       /* the body's bytes are all that is sent, then the connection is closed */
    FAKE_HANG,      /* nothing, until fake_free() */
    FAKE_HANG_LATE, /* the headers and half of the body, then nothing */
    FAKE_CLOSE,     /* closes without a word */
};

struct fake_answer {
    enum fake_mode mode;
    int status; /* 200 unless set */
    const char
        *headers; /* more of them, each with its "\r\n"; must outlive the server, as all pointers here */
    const char *body;
    size_t body_len;       /* strlen(body) unless set */
    size_t repeat;         /* the body so many times over; once unless set. Not kept in memory when plain */
    const char *location;  /* for redirects: sent as it is */
    int delay_ms;          /* before the first byte */
    bool held;             /* until fake_release() */
    size_t close_after;    /* closes after so many bytes of the answer, headers included */
    bool close;            /* Connection: close, and does */
    bool early;            /* answers once the headers are in, without waiting for the body */
    const char *only_path; /* waits for a request whose target starts so; others pass it by */
};

struct fake_request {
    char *method, *target;
    char *headers; /* as they came, lines ended by "\r\n" */
    char *body;    /* NUL-terminated */
    size_t body_len;
    unsigned connection; /* from 0, in the order they were taken */
};

/* On a free port of 127.0.0.1. Never NULL: a test that cannot have its server is aborted. */
struct fake_server *fake_new(void);
/* Takes NULL, returns NULL. Requests are freed. */
struct fake_server *fake_free(struct fake_server *s);
unsigned fake_port(const struct fake_server *s);
/* "http://127.0.0.1:PORT" and path; kept until fake_free(). */
const char *fake_url(struct fake_server *s, const char *path);

void fake_push(struct fake_server *s, struct fake_answer a);
void fake_default(struct fake_server *s, struct fake_answer a);
/* Lets one held answer go, also one whose request is still to come. */
void fake_release(struct fake_server *s);
/* Answers each request to a.only_path so, out of turn; such requests are counted, not kept. A second call
 * for the path replaces the answer. */
void fake_aside(struct fake_server *s, struct fake_answer a);
size_t fake_asides(struct fake_server *s);

/* Requests whose answer has begun, and connections taken, so far. */
size_t fake_requests(struct fake_server *s);
size_t fake_connections(struct fake_server *s);
/* Requests to all servers of the process that get no (further) answer. */
size_t fake_hanging(void);
/* The ith request, NULL when there is none yet; stays until fake_free(). */
const struct fake_request *fake_request(struct fake_server *s, size_t i);
/* The value of a header in `out`; false when it is absent. Names compare without case. */
bool fake_header(const struct fake_request *rq, const char *name, char *out, size_t n);
