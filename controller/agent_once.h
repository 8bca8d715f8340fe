/* `agent --once`: one round of each scorer, and its results on stdout. */
#ifndef DS_CONTROLLER_AGENT_ONCE_H
#define DS_CONTROLLER_AGENT_ONCE_H

#include "exporter/agent/agent.h"

enum output { OUTPUT_TABLE, OUTPUT_JSON, OUTPUT_PROM };

/* Runs the loop until each scorer has had its round, and prints. The exit status: 1 if anything failed. */
int agent_run_once(const struct agent_state *a, enum output output);

#endif
