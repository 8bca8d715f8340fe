/* The least that a scrape can cost: an HTTP server that gives the bytes of a file to every GET.
 *
 *     bench_serve_file FILE memory     written from memory, as the agent writes its page
 *     bench_serve_file FILE sendfile   by sendfile(), as a web server does
 *
 * The first line of stdout is the port on 127.0.0.1. Ends when stdin does. */
#include "test/bench/gen.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdio.h>
#include <sys/stat.h>

static struct MHD_Response *from_memory(int fd, size_t n)
{
    char *copy = malloc(n);
    size_t got = 0;

    must(copy != NULL);
    while (got < n) {
        ssize_t some = read(fd, copy + got, n - got);
        must(some > 0);
        got += (size_t)some;
    }
    (void)close(fd);
    return MHD_create_response_from_buffer(n, copy, MHD_RESPMEM_MUST_FREE);
}

static struct MHD_Response *response_of(const char *path, const char *how)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct MHD_Response *r;
    struct stat s;

    must(fd >= 0 && fstat(fd, &s) == 0);
    r = strcmp(how, "memory") == 0 ? from_memory(fd, (size_t)s.st_size)
                                   : MHD_create_response_from_fd64((uint64_t)s.st_size, fd);
    must(r && MHD_add_response_header(r, "Content-Type", "text/plain; version=0.0.4") == MHD_YES);
    return r;
}

static enum MHD_Result answer(void *arg, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data, size_t *data_bytes,
                              void **state)
{
    (void)url;
    (void)method;
    (void)version;
    (void)data;
    (void)data_bytes;
    if (!*state) {
        *state = arg; /* answered at the second call only, or the connection would not be kept */
        return MHD_YES;
    }
    return MHD_queue_response(connection, MHD_HTTP_OK, arg);
}

int main(int argc, char **argv)
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL;
    struct MHD_Response *response;
    struct MHD_Daemon *d;

    must(argc == 3);
    response = response_of(argv[1], argv[2]);
    d = MHD_start_daemon(flags, 0, NULL, NULL, answer, response, MHD_OPTION_SOCK_ADDR, &where,
                         MHD_OPTION_END);
    must(d != NULL);
    (void)printf("%u\n", MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT)->port);
    (void)fflush(stdout);
    while (getchar() != EOF)
        continue;
    MHD_stop_daemon(d);
    MHD_destroy_response(response);
    return 0;
}
