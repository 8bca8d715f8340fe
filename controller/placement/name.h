/* The name of a scorer's AddOnPlacementScore. */
#ifndef DS_PLACEMENT_NAME_H
#define DS_PLACEMENT_NAME_H

#include "exporter/base/str.h"

enum { OBJECT_NAME_MAX = 253 };

/* An RFC 1123 subdomain of at most 253 bytes: lower case, any byte but a-z 0-9 . - becomes '-', runs of
 * '-' fold, a run with a dot becomes one dot, both are trimmed at the ends; "score" if nothing is left.
 * Returns the length; out is terminated. */
size_t object_name(struct str score_name, char out[OBJECT_NAME_MAX + 1]);

#endif
