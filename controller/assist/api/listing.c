#include "controller/assist/api/listing.h"
