/* dynamic-scoring-cbc: solves one placement problem with CBC. Reads it from stdin and writes bounds and
 * solutions to stdout (controller/optimize/wire.h). Uses no file, and ends with its parent. */
#include "controller/optimize/cbc/program/search.h"
#include "controller/optimize/wire.h"
#include "exporter/base/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

static int cbc_write(void *arg, const struct wire_message *m)
{
    const int *fd = arg;
    BUF_AUTO(out, WIRE_BYTES_MAX);
    int r = wire_put_message(&out, m);

    for (size_t at = 0; at < out.n && r == 0;) {
        ssize_t n = write(*fd, out.p + at, out.n - at);

        if (n < 0 && errno != EINTR)
            r = -errno;
        else if (n > 0)
            at += (size_t)n;
    }
    return r;
}

static int cbc_read(struct buf *in)
{
    for (;;) {
        char *room;
        int r = buf_room(in, 1 << 16, &room);
        ssize_t n = r < 0 ? 0 : read(STDIN_FILENO, room, 1 << 16);

        if (r < 0 || (n < 0 && errno != EINTR))
            return r < 0 ? r : -errno;
        if (n == 0)
            return 0;
        if (n > 0)
            in->n += (size_t)n;
    }
}

/* Limits the address space. Sanitizers reserve terabytes of it. */
static int cbc_limit_memory(const char *mib)
{
    char *end;
    unsigned long n = strtoul(mib, &end, 10);
    struct rlimit limit = {n << 20, n << 20};

    if (*end || n == 0 || n > 1 << 24)
        return -EINVAL;
#ifdef __SANITIZE_ADDRESS__
    limit = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
#endif
    return setrlimit(RLIMIT_AS, &limit) < 0 ? -errno : 0;
}

/* CBC and what it is made of print to stdout now and then: only the answer may. */
static int cbc_take_stdout(void)
{
    int answer = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

    return answer < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ? -errno : answer;
}

int main(int argc, char **argv)
{
    BUF_AUTO(in, WIRE_BYTES_MAX);
    struct wire_problem w = {0};
    int r = argc == 2 ? cbc_limit_memory(argv[1]) : -EINVAL, answer = -1;

    if (r == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        r = -errno;
    if (r == 0)
        r = answer = cbc_take_stdout();
    if (r >= 0)
        r = cbc_read(&in);
    if (r >= 0)
        r = wire_get_problem(&w, in.p, in.n);
    if (r >= 0) {
        buf_done(&in);
        r = search_run(&w, cbc_write, &answer);
    }
    wire_problem_done(&w);
    if (r < 0)
        fprintf(stderr, "dynamic-scoring-cbc: %s%s\n", strerror(-r),
                argc == 2 ? "" : " (usage: dynamic-scoring-cbc MEBIBYTES <problem >answer)");
    return r < 0;
}
