/* A request target: the path loses its query and nothing else, and each argument that is found is in it. */
#include "exporter/base/httpd.h"
#include "exporter/base/httpd_internal.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *uri = str_dup((struct str){(const char *)data, size}), *was = strdup(uri);
    struct exchange x = {0};
    size_t path = strcspn(uri, "?"), n = strlen(uri);
    const char *name, *end;

    httpd_take_query(&x, uri);
    assert(memcmp(uri, was, path) == 0 && strlen(uri) == path + (n > path));
    assert(x.uri_end == (uintptr_t)uri + n && x.request.arguments.n <= n - path);
    name = cstr(x.request.arguments.p);
    end = name + x.request.arguments.n;
    while (name < end && !x.has_nul) { /* else the request is refused */
        const char *value = name + strlen(name) + 1, *found = httpd_query(&x.request, name);

        assert(value < end && found && found <= value);
        name = value + strlen(value) + 1;
    }
    assert(x.has_nul || name == end);
    free(x.query);
    free(was);
    free(uri);
    return 0;
}
