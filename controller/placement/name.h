/* The name of a scorer's AddOnPlacementScore. */
#ifndef DS_PLACEMENT_NAME_H
#define DS_PLACEMENT_NAME_H

#include "exporter/base/str.h"

enum { OBJECT_NAME_MAX = 253 };

/* An RFC 1123 subdomain: lower case, anything but a-z 0-9 . - becomes '-', runs of '-' fold, a run that holds a dot becomes one dot,
 * neither stands at the ends, 253 bytes at most; "score" when nothing is left. Returns the length; out is terminated. */
size_t object_name(struct str score_name, char out[OBJECT_NAME_MAX + 1]);

#endif
