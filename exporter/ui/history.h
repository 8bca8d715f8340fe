/* The last values of something that is measured repeatedly, for the pages' plots. Belongs to the loop. */
#ifndef DS_UI_HISTORY_H
#define DS_UI_HISTORY_H

#include "exporter/base/clock.h"
#include "exporter/ui/out.h"

/* A full history of five columns takes 1,456 bytes, one of two 736. */
enum { HISTORY_LENGTH = 60, HISTORY_COLUMNS = 5 };

struct history;

/* Adds a row of one value for each column (HISTORY_COLUMNS at most, the same number each time), and drops
 * the oldest of more than HISTORY_LENGTH. NAN: not measured. *h is allocated by the first call; without
 * memory the row is lost. */
void history_add(struct history **h, size_t columns, unix_ms at, const double *values);
/* Takes NULL, returns NULL. */
struct history *history_free(struct history *h);
DEFINE_CLEANUP(struct history, history_free)
/* "history":{"unixSeconds":[...],"<name>":[...],...}, the oldest first; null where there is no value. h may
 * be NULL. `names` ends with NULL. */
void member_history(struct out *o, const struct history *h, const char *const *names);

#endif
