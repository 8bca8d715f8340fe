/* Prints on stdout and stderr. Owns nothing. On the main thread, by commands that serve nothing. */
#include "controller/terminal.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/escape.h"
#include "exporter/ui/grid.h"

#include <errno.h>

static bool terminal_write(FILE *to, struct str text, int r)
{
    if (r == 0 && (fwrite(text.p, 1, text.n, to) != text.n || fflush(to) != 0))
        r = -errno;
    if (r < 0)
        (void)fprintf(stderr, "cannot print: %s\n", strerror(-r));
    return r == 0;
}

bool terminal_print(struct str text, int r)
{
    return terminal_write(stdout, text, r);
}

bool terminal_print_json(struct str text, int r)
{
    BUF_AUTO(visible, SIZE_MAX / 2);

    buf_put_visible(&visible, text);
    r = r ?: buf_failed(&visible);
    return terminal_write(stdout, buf_str(&visible), r);
}

bool terminal_print_lines(FILE *to, struct str text)
{
    BUF_AUTO(clean, SIZE_MAX / 2);
    struct buf_mark mark = buf_mark(&clean);
    int r;

    while (text.n) {
        bool ends = memchr(text.p, '\n', text.n);

        grid_clean(&clean, str_take(&text, '\n'));
        buf_puts(&clean, ends ? "\n" : "");
    }
    r = buf_commit(&clean, mark);
    return terminal_write(to, buf_str(&clean), r);
}

void terminal_printf(FILE *to, const char *fmt, ...)
{
    CLEANUP(cleanup_free) char *text = NULL;
    va_list args;

    va_start(args, fmt);
    text = xvasprintf(fmt, args);
    va_end(args);
    (void)terminal_print_lines(to, str_of(text));
}
