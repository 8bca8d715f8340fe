/* A call that came by HTTP, from its text to the text of its answer:
 *
 *     read -> run -> written
 *
 * Large arguments are read on the worker, and answers that do not come at once are written there; while the
 * worker has one of these jobs, the loop touches nothing of the request but the call's end. */
#pragma once

#include "controller/assist/api_error.h"
#include "controller/assist/call.h"
#include "exporter/base/buf.h"
#include "exporter/base/loop.h"

#include <stdbool.h>

struct api;
struct api_operation;
struct api_request;
struct httpd_reply;
struct httpd_request;

/* The largest body of a request, and the largest answer. */
enum { API_MAX_BODY = 16 << 20, API_MAX_ANSWER = 512 << 20 };

/* The way by which a request came, REST or the Model Context Protocol. */
struct api_interface {
    const char *name;      /* the label of metrics */
    const char *arguments; /* what errors call the arguments as a whole */
    bool answers_200;      /* also with errors, of which the text tells */
    const json_t *(*schema)(const struct api_operation *op);
    /* Appends the answer, or the error. On the worker, or on the loop. */
    int (*print)(const struct api_request *r, struct buf *into);
};

/* A call that came by HTTP. */
struct api_request {
    struct call call;
    const struct api_operation *op; /* NULL: of api_answer() */
    const struct api_interface *by;
    struct job reading, writing;
    struct api *api;
    struct httpd_reply *reply;
    bool is_deferred;  /* the reply is: it needs httpd_finish() */
    bool has_returned; /* run() has, without an answer */
    /* Arguments */
    struct str text;  /* JSON */
    struct buf query; /* the text of a GET */
    bool forces_dry_run;
    bool has_read;
    struct api_error api_error; /* to the arguments */
    /* The answer */
    struct buf body;
    int printed;       /* 0: the body is complete */
    struct buf id;     /* of a tool's call, as JSON */
    bool is_stateless; /* revision 2026-07-28 or later of the Model Context Protocol */
};

/* A request of the operation; NULL: of none, for api_answer(). */
struct api_request *api_request_new(struct api *api, const struct api_operation *op,
                                    const struct api_interface *by, struct httpd_reply *reply);
/* Reads the arguments, which stay valid until the reply is finished, and runs the operation. The request
 * is answered and freed when it has ended. */
void api_request_start(struct api_request *r, struct str text);
/* Instead of that, once its call has ended. */
void api_request_return(struct api_request *r);
/* Sends the answer, which is taken, later: it is printed on the worker. */
void api_answer(struct api *a, struct httpd_reply *reply, json_t *answer);

/* Appends the answer of a call as JSON. */
MUST_USE int api_call_print(const struct call *c, struct buf *into);
/* Has the reply send the JSON text, which is taken. */
void api_reply_json(struct httpd_reply *reply, unsigned status, struct buf *text);
/* Whether the request's body says that it is JSON. */
bool api_body_is_json(const struct httpd_request *rq);
