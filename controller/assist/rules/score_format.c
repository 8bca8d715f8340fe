#include "controller/assist/rules/score_format.h"
