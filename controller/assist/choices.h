/* What fills in the answers of GET /policies and /workloads: what a request for a plan may name. */
#pragma once

struct listing;
struct snapshot;

void policies_fill(struct listing *l, const struct snapshot *hub);
void workloads_fill(struct listing *l, const struct snapshot *hub);
