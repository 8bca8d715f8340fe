/* Operations as REST requests: query parameters or a JSON body in, JSON out. On the loop. */
#pragma once

#include "exporter/http/httpd.h"

/* A handler of httpd; its argument is the struct api_operation. */
void rest_serve(void *op, const struct httpd_request *rq, struct httpd_reply *reply);
