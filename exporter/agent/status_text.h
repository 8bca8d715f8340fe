/* What the status page, the JSON and the table share: the writing itself, words for times and amounts, and
 * which scores are the highest and the lowest. */
#ifndef DS_AGENT_STATUS_TEXT_H
#define DS_AGENT_STATUS_TEXT_H

#include "exporter/agent/agent.h"

/* Appends to a buffer. The first error sticks, and every later call does nothing: a writer looks at it once,
 * at its end. */
struct out {
    struct buf *b;
    size_t mark; /* where it began */
    int error;
};

static inline struct out out_begin(struct buf *b)
{
    return (struct out){.b = b, .mark = b->n};
}

/* The error, if any; the buffer is then as it was. */
MUST_USE int out_end(struct out *o);
void out_str(struct out *o, struct str s);
void out_puts(struct out *o, const char *s);
void out_printf(struct out *o, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* The URL without user and password. */
void out_url(struct out *o, const char *url);

/* The wall clock of the agent's loop, and the bytes that its /metrics page holds. */
int64_t status_now(const struct agent *a);
size_t status_page_memory(const struct agent *a);

enum { STATUS_WORD = 40 };

/* For people, all of them. "12 s", "3m 10s", "2h 5m", "4d 3h". */
void status_duration(int64_t ms, char out[STATUS_WORD]);
/* "12 s ago", "in 3m 10s", "now"; "never" for 0. */
void status_when(int64_t now_ms, int64_t at_ms, char out[STATUS_WORD]);
/* "0.42 ms", "85 ms", "1.25 s", "2m 5s". */
void status_seconds(double s, char out[STATUS_WORD]);
/* "512 B", "1.5 KiB", "256 MiB". */
void status_bytes(uint64_t n, char out[STATUS_WORD]);
/* "1,234,567". */
void status_count(uint64_t n, char out[STATUS_WORD]);
/* What to look at after an error, without a full stop; never NULL. */
const char *status_hint(enum round_error e, enum round_stage stage);
/* "Prometheus", "None". */
const char *status_source_word(enum source_type type);
/* Whether the last round got as far as the scoring API: if not, its figures for that are no zeros, but
 * nothing. */
bool status_scorer_asked(const struct scorer_status *st);
/* How many series the scorer exposes. */
size_t status_series(const struct scorer *s);

struct totals {
    size_t by_state[SCORER_STATES];
    size_t series;
};
struct totals status_totals(const struct agent *a);

enum { RANKED_MAX = 20 };

/* Places of series in their set. Equal scores come in the set's order, NaN in neither list. */
struct ranking {
    size_t numbers, nans; /* how many of the scores are which */
    size_t n;             /* in each list: numbers, or the most that was asked for */
    size_t highest[RANKED_MAX], lowest[RANKED_MAX];
};
/* One pass over the values. most <= RANKED_MAX; b may be NULL. */
void status_rank(const struct batch *b, size_t most, struct ranking *ret);

/* A score's labels that are set, other than those that all of the scorer's series share by design. */
struct shown_label {
    unsigned place;   /* in the order below, whether the others are set or not */
    const char *name; /* without ds_ */
    struct str value;
};
enum { SHOWN_LABELS = 7, LABEL_SCRATCH = 8 << 20 };

/* In the order in which people look for a thing: node, namespace, app, pod, container, device, meta. The
 * values live in scratch until the next call. Returns how many. */
size_t status_labels(struct out *o, const struct batch *b, size_t series, struct buf *scratch,
                     struct shown_label ret[SHOWN_LABELS]);

#endif
