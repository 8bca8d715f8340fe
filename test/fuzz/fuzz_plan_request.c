/* Requests for plans, as the schema lets them through, on the hub of the guide's example: one that is refused
 * says why, and the problem of any other is well-formed. */
#include "controller/assist/api/api.h"
#include "controller/assist/api/schema.h"
#include "controller/assist/rules/model.h"
#include "controller/optimize/problem.h"
#include "test/unit/assist/rules/guide.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool good)
{
    if (!good)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static json_t *schemas;
    static struct guide guide;
    json_auto_t *json = json_loadb((const char *)data, size, 0, NULL);
    struct objection ob = {0};
    struct model *m = NULL;

    if (!schemas) {
        schemas = json_loads(assist_schemas, 0, NULL);
        guide = guide_new(GUIDE);
    }
    if (!json || !schema_accepts(json_object_get(schemas, "plan_request"), json, "body", &ob))
        return 0;
    if (model_new(&m, json, guide.hub, &ob) < 0)
        require((ob.status == 422 || ob.status == 404) && ob.detail[0]);
    else
        require(!problem_check(&m->problem));
    (void)model_free(m);
    return 0;
}
