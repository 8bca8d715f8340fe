/* The tests of test_json.c without SSE2. */
#define DS_NO_SIMD
#include "test/unit/base/test_json.c"
