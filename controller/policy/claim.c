#include "controller/policy/claim.h"
