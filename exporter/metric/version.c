#include "exporter/metric/version.h"

const char ds_version[] = DS_VERSION;
const char ds_revision[] = DS_REVISION;
const char ds_user_agent[] = "dynamic-scoring/" DS_VERSION;
