/* Where a person looks first after a round has failed. Pure; any thread. */
#pragma once

#include "exporter/score/round_error.h"

/* "the log of the scoring API": the object of "check". */
const char *hint_of_error(enum round_error e, enum round_stage stage);
