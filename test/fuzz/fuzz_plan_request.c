/* Requests for plans, as the schema lets them through: one that is refused says which field is wrong, and all
 * names of one that is read can be part of a URL's path. */
#include "controller/assist/api/schema.h"
#include "controller/assist/api/schemas.h"
#include "controller/assist/rules/request.h"

#include <jansson.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool good)
{
    if (!good)
        abort();
}

static size_t nobody(void *arg, struct str name)
{
    (void)arg;
    return name.n % 2 ? 0 : SIZE_MAX;
}

static void ignore(void *arg, size_t app, size_t device)
{
    (void)arg;
    require((app == 0 || app == SIZE_MAX) && (device == 0 || device == SIZE_MAX));
}

static void check_request(const struct plan_request *r, struct str text)
{
    const struct score_matcher matcher = {nobody, nobody, ignore, NULL};

    require(r->n_clusters && r->n_workloads && r->n_scores && !strchr(r->namespace, '/'));
    for (size_t i = 0; i < r->n_clusters; i++)
        require(*r->clusters[i].name && !strchr(r->clusters[i].name, '/'));
    for (size_t i = 0; i < r->n_scores; i++)
        score_format_match(&r->scores[i].format, text, &matcher);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static json_t *schema;
    json_auto_t *json = json_loadb((const char *)data, size, 0, NULL);
    struct schema_problem problem;
    struct objection ob = {0};
    struct plan_request *r = NULL;

    schema = schema ? schema : json_loads(schema_plan_request, 0, NULL);
    if (!json || !schema_accepts(schema, json, &problem))
        return 0;
    if (request_read(&r, json, &ob) < 0)
        require(ob.status == 422 && ob.detail[0]);
    else
        check_request(r, (struct str){(const char *)data, size_min(size, 64)});
    (void)request_free(r);
    return 0;
}
