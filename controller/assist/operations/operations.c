#include "controller/assist/operations/operations.h"

const struct operation *const assist_operations[] = {NULL};
const size_t n_assist_operations = ARRAY_SIZE(assist_operations) - 1;
