/* The label `meta` of a forecast: base64 of
 * {"predictor_label":"<node>_<namespace>_<pod>","alpha":20.0,"threshold":1.0}, as the documents print it. */
#ifndef DS_MODELS_PREDICTOR_LABEL_H
#define DS_MODELS_PREDICTOR_LABEL_H

#include "exporter/base/str.h"

enum {
    PREDICTOR_LABEL_MAX = 256
}; /* an agent cuts longer values of labels, after which they are not base64 any more */

/* Writes the label of a series and returns its length, at most PREDICTOR_LABEL_MAX. A label that the
 * series lacks is `unknown`; names that are too long are cut. */
size_t predictor_label(char out[PREDICTOR_LABEL_MAX], struct str metric, double alpha, double threshold);

#endif
