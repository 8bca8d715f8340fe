/* The optimiser's HTTP server: its operations as REST requests, /mcp, /openapi.json, and the page of the last
 * plan. */
#ifndef DS_ASSIST_PAGES_WEB_H
#define DS_ASSIST_PAGES_WEB_H

#include "controller/assist/state/assist.h"

#endif
