#include "controller/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

unsigned terminal_width(void)
{
    struct winsize w;

    return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}
