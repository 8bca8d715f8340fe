/* The document of the REST requests (https://spec.openapis.org/oas/v3.1.1). */
#pragma once

struct api;
struct httpd_reply;
struct httpd_request;

/* Writes it into a->openapi, once all operations are there. */
void openapi_build(struct api *a);
/* A handler of httpd; its argument is the struct api. */
void openapi_serve(void *api, const struct httpd_request *rq, struct httpd_reply *reply);
