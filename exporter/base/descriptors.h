/* The limit of open files. */
#ifndef DS_BASE_DESCRIPTORS_H
#define DS_BASE_DESCRIPTORS_H

/* Below this the program does not start: its own files, watches and listeners would leave none for rounds. */
enum { DESCRIPTORS_MIN = 64 };

/* Raises the soft limit to the hard one, up to 65,536: many systems keep the soft one at 1,024 for
 * programs that call select(), which this one does not. Returns the limit. */
unsigned descriptors_raise(void);

#endif
