#include "exporter/tsdb/tsdb.h"

WORD_TABLE(tsdb_result_word, enum tsdb_result, TSDB_RESULTS,
           {[TSDB_OK] = "ok",
            [TSDB_NO_SERIES] = "no_series",
            [TSDB_OUT_OF_ORDER] = "out_of_order",
            [TSDB_DUPLICATE] = "duplicate",
            [TSDB_TOO_OLD] = "too_old",
            [TSDB_TOO_NEW] = "too_new",
            [TSDB_SERIES_LIMIT] = "series_limit",
            [TSDB_BYTES_LIMIT] = "bytes_limit",
            [TSDB_BAD_LABELS] = "bad_labels",
            [TSDB_NO_MEMORY] = "no_memory"});
