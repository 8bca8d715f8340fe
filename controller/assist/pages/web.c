#include "controller/assist/pages/web.h"
