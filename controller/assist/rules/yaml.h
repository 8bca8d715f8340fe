/* JSON values as YAML, as people write it. */
#ifndef DS_ASSIST_RULES_YAML_H
#define DS_ASSIST_RULES_YAML_H

#include "exporter/base/buf.h"

#include <jansson.h>

/* Appends the objects, `---` between them. Strings that YAML might take for something else are in double
 * quotes. -ENOMEM, -EFBIG. */
MUST_USE int yaml_print(const json_t *objects, struct buf *into);

#endif
