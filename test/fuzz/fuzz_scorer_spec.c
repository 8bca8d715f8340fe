/* A DynamicScorer of any content, with what its status remembers of /config. */
#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/spec.h"
#include "controller/kube/json.h"
#include "test/fuzz/effective_checks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run(json_t *object)
{
    char why[SPEC_WHY_BYTES] = "";
    struct api_config synced = {0};
    struct scorer_spec spec;
    struct effective e;
    int r = scorer_spec_read(&spec, object, why);

    assert(r == 0 || r == -EINVAL);
    if (r < 0) {
        check_sentence(why);
        return;
    }
    check_effective(&spec, NULL, &e);
    effective_done(&e);
    r = api_config_read(&synced, kube_get(object, "status", "lastSyncedConfig", NULL), why);
    assert(r == 0 || r == -EINVAL);
    if (r == 0) {
        check_effective(&spec, &synced, &e);
        effective_done(&e);
        api_config_done(&synced);
    }
    scorer_spec_done(&spec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *object = NULL;

    if (kube_json_parse(&object, (struct str){(const char *)data, size}, NULL) == 0)
        run(object);
    json_decref(object);
    return 0;
}
