/* Inside of the status pages, the agent's and the hub controller's: writing HTML, and its parts. */
#ifndef DS_AGENT_STATUS_PAGE_H
#define DS_AGENT_STATUS_PAGE_H

#include "exporter/agent/status_text.h"

/* The pages' one style sheet. status_html_csp holds its hash: whoever changes the one changes the other, and
 * test/scenarios/test_status_page.py says to what. */
extern const char status_style[];

/* Text for an element or a quoted attribute: nothing in it is markup. Ill-formed UTF-8 and control characters
 * become U+FFFD. */
void html_text(struct out *o, struct str s);
/* A format that knows %s, which is escaped, and %zu. All that is not a literal goes through here. */
void html(struct out *o, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* <dt> and the beginning of <dd>; the end of it. */
void html_fact(struct out *o, const char *what);
void html_fact_end(struct out *o);
/* "12 s ago" and the time in UTC; "never". */
void html_moment(struct out *o, int64_t now_ms, int64_t at_ms);
void html_count(struct out *o, uint64_t n);
/* A coloured word; class: that of a scorer's state ("ok", "empty", "failing", "stale"; else grey). */
void html_badge(struct out *o, const char *class, const char *word);
/* All up to <body>. name: what the page is of; failing: how many things are; bad: a red icon. */
void html_head(struct out *o, const char *name, size_t failing, bool bad);
/* The line of links, which are their own words, and the time. */
void html_links(struct out *o, const char *const *paths, size_t n, int64_t now_ms);
/* A number in .tiles, in its class' colour unless it is 0. */
void html_tile(struct out *o, const char *what, const char *class, uint64_t n);
/* What a summary asks and where, folded away unless `unfolded`. */
void html_summary(struct out *o, const struct summary *s, bool unfolded);
/* This build, and the end of the page. */
void html_build(struct out *o, int64_t started_ms, int64_t now_ms);

/* The state as a coloured word. */
void html_state(struct out *o, enum scorer_state state);

/* All about scorer i of the agent; the long parts of it folded away unless `unfolded`. */
void html_scorer(struct out *o, const struct scorer *s, size_t i, int64_t now_ms, bool unfolded);
/* Where scores are sent to, and how that goes; nothing when there are no such places. */
void html_endpoints(struct out *o, const struct agent *a, int64_t now_ms);
/* The configuration in force, how the last one fared, and the limits. */
void html_config(struct out *o, const struct agent *a, int64_t now_ms);

#endif
