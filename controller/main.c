/* One program, one subcommand per role. */
#include "controller/flags.h"
#include "controller/role.h"
#include "controller/terminal.h"
#include "exporter/base/alloc.h"
#include "exporter/base/heap.h"
#include "exporter/metric/metrics.h"

#include <crypt.h>
#include <curl/curl.h>
#include <gnu/libc-version.h>
#include <gnutls/gnutls.h>
#include <jansson.h>
#include <limits.h>
#include <malloc.h>
#include <microhttpd.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <protobuf-c/protobuf-c.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <yaml.h>
#include <zlib.h>
#include <zstd.h>

/* Below the first the program does not start: its own files, watches and listeners would leave none for
 * rounds. */
enum { DESCRIPTORS_MIN = 64, DESCRIPTORS_ENOUGH = 1 << 16 };

static const struct command *const commands[] = {
    &command_agent,        &command_controller,     &command_optimizer, &command_check_config,
    &command_check_scorer, &command_policy_watcher, &command_scorer,    &command_spool};

static void main_print_usage(FILE *to)
{
    (void)fprintf(to, "usage: dynamic-scoring COMMAND [flags]\n\ncommands:\n");
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
        (void)fprintf(to, "  %-16s%s\n", commands[i]->name, commands[i]->help);
    (void)fprintf(to, "\n  --version     print the version\n  --help        print this\n\n"
                      "Use 'dynamic-scoring COMMAND --help' for the flags of a command.\n");
}

/* The libraries at hand, which may be newer than those of the build. Three do not tell: of these, what it
 * was built with. */
static void main_print_version(void)
{
    char pcre2[64] = "";

    (void)pcre2_config(PCRE2_CONFIG_VERSION, pcre2);
    pcre2[strcspn(pcre2, " ")] = '\0'; /* its date */
    (void)printf("dynamic-scoring %s (revision %s)\n%s\n", ds_version, ds_revision, curl_version());
    (void)printf(
        "libmicrohttpd/%s GnuTLS/%s jansson/%s libyaml/%s PCRE2/%s protobuf-c/%s zlib/%s zstd/%s glibc/%s\n",
        MHD_get_version(), gnutls_check_version(NULL), jansson_version_str(), yaml_get_version_string(),
        pcre2, protobuf_c_version(), zlibVersion(), ZSTD_versionString(), gnu_get_libc_version());
    (void)printf("built with: ISA-L/%s libxcrypt/%s snappy/%s\n", DS_ISAL_VERSION, XCRYPT_VERSION_STR,
                 DS_SNAPPY_VERSION);
}

/* "manager FLAGS" and "dynamic-scoring-addon agent FLAGS" are the reference implementation's programs: with
 * links of these names, its manifests start ours. */
static int main_run(char **argv)
{
    if (strcmp(basename(argv[0]), "manager") == 0)
        return command_controller.run(argv);
    if (strcmp(basename(argv[0]), "dynamic-scoring-addon") == 0 && strcmp(argv[1], "controller") == 0) {
        terminal_printf(stderr, "dynamic-scoring-addon controller: nothing to run, since an AddOnTemplate "
                                "installs the agents: delete this Deployment\n");
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
        if (strcmp(argv[1], commands[i]->name) == 0)
            return commands[i]->run(argv + 1);
    terminal_printf(stderr, "dynamic-scoring: unknown command '%s'\n", argv[1]);
    main_print_usage(stderr);
    return EXIT_USAGE;
}

/* Raises the soft limit of open files to the hard one: many systems keep the soft one at 1,024 for programs
 * that call select(), which this one does not. Returns the limit. */
static unsigned main_raise_descriptors(void)
{
    struct rlimit files;
    rlim_t now;

    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return UINT_MAX;
    now = files.rlim_cur;
    files.rlim_cur = files.rlim_max < DESCRIPTORS_ENOUGH ? files.rlim_max : DESCRIPTORS_ENOUGH;
    if (files.rlim_cur > now && setrlimit(RLIMIT_NOFILE, &files) == 0)
        now = files.rlim_cur;
    return now < UINT_MAX ? (unsigned)now : UINT_MAX;
}

int main(int argc, char **argv)
{
    bool manager = argc > 0 && strcmp(basename(argv[0]), "manager") == 0;
    unsigned files;
    int status;

    if (argc < 2 && !manager) {
        main_print_usage(stderr);
        return EXIT_USAGE;
    }
    if (argc > 1 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-version") == 0)) {
        main_print_version();
        return 0;
    }
    if (!manager &&
        (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)) {
        main_print_usage(stdout);
        return 0;
    }
    files = main_raise_descriptors();
    if (files < DESCRIPTORS_MIN) {
        (void)fprintf(stderr,
                      "dynamic-scoring: the limit of open files is %u, at least %d are needed (ulimit -n)\n",
                      files, DESCRIPTORS_MIN);
        return 1;
    }
    heap_set_thresholds();
    (void)mallopt(M_ARENA_MAX, 2);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* over RLIMIT_FSIZE, write() fails with EFBIG */
    json_set_alloc_funcs(xmalloc, free);
    if (curl_global_init_mem(CURL_GLOBAL_DEFAULT, xmalloc, free, xrealloc, xstrdup, xcalloc) != CURLE_OK) {
        terminal_printf(stderr, "dynamic-scoring: cannot initialize libcurl\n");
        return 1;
    }
    status = main_run(argv);
    curl_global_cleanup();
    return status;
}
