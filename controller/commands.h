/* The subcommands. */
#ifndef DS_CONTROLLER_COMMANDS_H
#define DS_CONTROLLER_COMMANDS_H

#include "controller/flags.h"

extern const struct command command_agent, command_controller, command_check_config, command_spool;

#endif
