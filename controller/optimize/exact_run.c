#include "controller/optimize/exact_run.h"

#include "exporter/base/buf.h"
#include "exporter/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
    EXACT_LOOK_MS = 50,          /* from one look at `cancel` to the next */
    EXACT_ANSWER_MAX = 64 << 20, /* bytes of a message */
    EXACT_READ = 1 << 16,
};
#define EXACT_MEMORY_MIB "512" /* of address space */

/* With one socket as its stdin and stdout. Signals that this program ignores or blocks are not so there. */
static int exact_spawn(pid_t *ret, const char *program, int socket)
{
    char *argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t)EXACT_MEMORY_MIB, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t all, none;
    int r;

    (void)sigfillset(&all);
    (void)sigemptyset(&none);
    if (posix_spawn_file_actions_init(&files) != 0)
        return -ENOMEM;
    if (posix_spawnattr_init(&attributes) != 0) {
        (void)posix_spawn_file_actions_destroy(&files);
        return -ENOMEM;
    }
    r = posix_spawn_file_actions_adddup2(&files, socket, STDIN_FILENO);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&files, socket, STDOUT_FILENO);
    if (r == 0)
        r = posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (r == 0)
        r = posix_spawnattr_setsigmask(&attributes, &none);
    if (r == 0)
        r = posix_spawnattr_setsigdefault(&attributes, &all);
    if (r == 0)
        r = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (r == 0)
        r = posix_spawn(ret, program, &files, &attributes, argv, environ);
    (void)posix_spawn_file_actions_destroy(&files);
    (void)posix_spawnattr_destroy(&attributes);
    return -r;
}

/* Sends what the socket takes; after the last byte the program sees the end of its input. */
static int exact_send(int socket, struct str *rest)
{
    ssize_t n = send(socket, rest->p, rest->n, MSG_NOSIGNAL | MSG_DONTWAIT);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -EIO;
    rest->p += n;
    rest->n -= (size_t)n;
    if (rest->n == 0 && shutdown(socket, SHUT_WR) < 0)
        return -EIO;
    return 0;
}

/* Takes the whole messages that have arrived. 1 after WIRE_END. */
static int exact_take(const struct exact_run *x, struct buf *in)
{
    size_t at = 0;
    int r = 0;

    while (r == 0) {
        struct wire_message m;
        int64_t n = wire_get_message(&m, x->p, in->p + at, in->n - at);

        if (n <= 0) {
            r = n < 0 ? -EIO : 0;
            break;
        }
        at += (size_t)n;
        r = m.kind == WIRE_END ? 1 : 0;
        if (r == 0)
            r = x->take(x->arg, &m);
    }
    memmove(in->p, in->p + at, in->n - at);
    buf_truncate(in, in->n - at);
    return r;
}

static int exact_receive(const struct exact_run *x, int socket, struct buf *in)
{
    char *room;
    int r = buf_room(in, EXACT_READ, &room);
    ssize_t n;

    if (r < 0)
        return r == -EFBIG ? -EIO : r;
    n = recv(socket, room, EXACT_READ, MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -EIO;
    if (n == 0)
        return -EIO; /* ended without WIRE_END */
    in->n += (size_t)n;
    return exact_take(x, in);
}

static int exact_talk(const struct exact_run *x, int socket)
{
    BUF_AUTO(in, EXACT_ANSWER_MAX);
    struct str rest = x->input;

    for (;;) {
        struct pollfd fd = {.fd = socket, .events = (short)(rest.n > 0 ? POLLIN | POLLOUT : POLLIN)};
        int64_t left = mono_diff(clock_system.mono(&clock_system), x->end);
        int r;

        if (left <= 0)
            return -ETIME;
        if (x->cancel && atomic_load(x->cancel))
            return -ECANCELED;
        if (poll(&fd, 1, (int)(left < EXACT_LOOK_MS ? left : EXACT_LOOK_MS)) < 0 && errno != EINTR)
            return -EIO;
        r = rest.n > 0 && fd.revents & POLLOUT ? exact_send(socket, &rest) : 0;
        if (r == 0 && fd.revents & (POLLIN | POLLHUP | POLLERR))
            r = exact_receive(x, socket, &in);
        if (r != 0)
            return r > 0 ? 0 : r;
    }
}

int exact_run(const struct exact_run *x)
{
    int sockets[2], r;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
        return -EIO;
    r = exact_spawn(&pid, x->program, sockets[1]);
    (void)close(sockets[1]);
    if (r < 0) {
        log_debug("cannot start the solver", L_STR("program", x->program), L_ERR(r));
        (void)close(sockets[0]);
        return -EIO;
    }
    r = exact_talk(x, sockets[0]);
    (void)close(sockets[0]);
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return r;
}
