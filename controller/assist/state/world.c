#include "controller/assist/state/world.h"
