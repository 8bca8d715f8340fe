/* JSON values as YAML. Pure. */
#pragma once

#include "exporter/base/buf.h"

#include <jansson.h>

/* Appends the objects as YAML, `---` between them. -EFBIG. */
MUST_USE int yaml_print(const json_t *objects, struct buf *into);
