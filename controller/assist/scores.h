/* What fills in the answer of GET /addonplacementscores. */
#pragma once

struct listing;
struct snapshot;

void scores_fill(struct listing *l, const struct snapshot *hub);
