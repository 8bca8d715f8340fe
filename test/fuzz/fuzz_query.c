/* A request target: each argument that is listed is found, and all fit into the query. */
#include "exporter/base/httpd.h"
#include "exporter/base/httpd_internal.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *uri = str_dup((struct str){(const char *)data, size});
    struct client c = {0};
    struct httpd_request rq = {0};
    size_t path = strcspn(uri, "?"), n = strlen(uri);
    const char *name, *end;

    httpd_take_target(&c, uri);
    rq.arguments = (struct str){c.arguments, c.arguments_size};
    assert(c.target_size == n && rq.arguments.n <= n - path);
    name = cstr(rq.arguments.p);
    end = name + rq.arguments.n;
    while (name < end && !c.has_nul) { /* else the request is refused */
        const char *value = name + strlen(name) + 1, *found = httpd_query(&rq, name);

        assert(value < end && found && found <= value);
        name = value + strlen(value) + 1;
    }
    assert(c.has_nul || name == end);
    free(c.arguments);
    free(uri);
    return 0;
}
