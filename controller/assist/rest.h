/* Operations as REST requests: query parameters or a JSON body in, JSON out. On the loop. */
#pragma once

struct httpd_reply;
struct httpd_request;

/* A handler of httpd; its argument is the struct api_operation. */
void rest_serve(void *op, const struct httpd_request *rq, struct httpd_reply *reply);
