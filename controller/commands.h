/* The subcommands. */
#ifndef DS_CONTROLLER_COMMANDS_H
#define DS_CONTROLLER_COMMANDS_H

#include "controller/flags.h"

extern const struct command command_agent;
extern const struct command command_controller;
extern const struct command command_optimizer;
extern const struct command command_check_config;
extern const struct command command_check_scorer;
extern const struct command command_policy_watcher;
extern const struct command command_scorer;
extern const struct command command_spool;

#endif
