/* What fills in the answer of GET /scorers/explain: why a scorer has no score on a cluster. */
#pragma once

struct listing;
struct snapshot;

void explain_fill(struct listing *l, const struct snapshot *hub);
