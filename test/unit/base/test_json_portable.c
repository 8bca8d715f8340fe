/* The tests of test_json.c on a build without SSE2: these definitions take the place of the library's. */
#define DS_NO_SIMD
#include "exporter/base/json.c"
#include "test/unit/base/test_json.c"
