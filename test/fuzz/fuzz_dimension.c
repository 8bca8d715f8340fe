/* A format that holds no placeholder renders to itself; each placeholder adds what its label holds, and no
 * more. */
#include "controller/placement/items.h"
#include "exporter/base/buf.h"
#include "exporter/metric/series.h"

static void require(bool good)
{
    if (!good)
        abort();
}

static const struct str labels_of_series[DS_LABELS] = {
    [DS_APP] = STR("${node}"), [DS_CLUSTER] = STR("c1"),  [DS_CONTAINER] = STR(""),
    [DS_DEVICE] = STR(""),     [DS_META] = STR("\\\"\n"), [DS_NAMESPACE] = STR("ns"),
    [DS_NODE] = STR("${app}"), [DS_POD] = STR("p"),       [DS_SCORE_NAME] = STR("cpu"),
};

static void check_name(struct str text)
{
    char name[OBJECT_NAME_MAX + 1];
    size_t n = object_name(text, name);

    require(n > 0 && n <= OBJECT_NAME_MAX && name[n] == '\0');
    for (size_t i = 0; i < n; i++) {
        bool alnum = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9');
        bool inside = i > 0 && i + 1 < n && name[i - 1] != '.' && name[i - 1] != '-';
        require(alnum || (inside && (name[i] == '-' || name[i] == '.')));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    BUF_AUTO(got, 16u << 20);

    check_name(text);
    item_name_put(text, labels_of_series, &got);
    require(buf_failed(&got) == 0);
    require(memmem(data, size, "${", 2) || str_eq(buf_str(&got), text));
    return 0;
}
