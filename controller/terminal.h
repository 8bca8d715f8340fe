/* Where a command prints to. */
#ifndef DS_CONTROLLER_TERMINAL_H
#define DS_CONTROLLER_TERMINAL_H

/* Characters in a line of the terminal on stdout; 0 if it is none. */
unsigned terminal_width(void);

#endif
