/* Requests for plans, as the schema lets them through, on the hub of the guide's example: one that is refused
 * says why, and the problem of any other is well-formed. */
#include "controller/assist/api.h"
#include "controller/assist/model.h"
#include "controller/assist/plan_request.h"
#include "controller/assist/schema.h"
#include "controller/optimize/problem.h"
#include "test/unit/assist/guide.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool good)
{
    if (!good)
        abort();
}

static void check_problem(const struct opt_problem *p)
{
    require(p->n_resources > 0 && p->first_setting[0] == 0 && p->first_setting[p->n_sites] == p->n_settings);
    for (size_t i = 0; i < p->n_sites; i++)
        require(p->first_setting[i] <= p->first_setting[i + 1]);
    for (size_t i = 0; i < p->n_workloads; i++)
        require(p->replicas[i] > 0);
    for (size_t i = 0; i < p->n_workloads * p->n_resources; i++)
        require(p->requests[i] >= 0);
    for (size_t i = 0; i < p->n_settings * p->n_resources; i++)
        require(p->supplies[i] >= 0);
    for (size_t i = 0; i < p->n_running; i++)
        require(p->running[i].workload < p->n_workloads && p->running[i].site < p->n_sites);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static json_t *schemas;
    static struct guide guide;
    struct str text = {(const char *)data, size};
    json_auto_t *json = NULL;
    struct api_error error = {0};
    struct fleet_model *m = NULL;
    size_t bytes;

    if (!schemas) {
        schemas = json_loads(assist_schemas, 0, NULL);
        guide = guide_new(GUIDE);
    }
    if (schema_read(&json, json_object_get(schemas, "plan_request"), text, "body", 64 << 20, &bytes, &error) <
        0)
        return 0;
    if (request_make_model(&m, json, guide.hub, &error) < 0)
        require((error.status == 422 || error.status == 404) && error.detail[0]);
    else
        check_problem(&m->problem);
    (void)model_free(m);
    return 0;
}
