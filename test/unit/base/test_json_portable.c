/* The tests of test_json.c on a build without SSE2: these definitions take the place of the library's. */
#define DS_NO_SIMD
#include "exporter/base/json.c"
#include "exporter/base/json_scan.c"
#include "exporter/base/json_skip.c"
#include "exporter/base/json_string.c"
#include "test/unit/base/test_json.c"
