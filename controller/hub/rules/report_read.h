/* An agent's report as its document has it, before report.c makes it small. Only report.c uses it. */
#ifndef DS_HUB_REPORT_READ_H
#define DS_HUB_REPORT_READ_H

#include "controller/hub/rules/report.h"

/* A cell and what is needed until all are known. */
struct found {
    struct report_cell cell;
    uint32_t place; /* in the document */
    struct str error;
};

/* What the document says; texts are raw. */
struct reading {
    bool is_report; /* says something that only a report says */
    bool config_ok;
    struct str problems, hub_error;
    struct found *list;
    size_t n, cap;
    uint64_t not_shown, over; /* over: found no room here */
};

/* Fills r, which is all zeros. -EINVAL for what is no report, -ENOMEM. */
MUST_USE int reading_read(struct reading *r, struct str text);
void reading_done(struct reading *r);
bool report_state_fails(uint8_t state);

#endif
