/* `dynamic-scoring spool ls|verify|export PATH`: reads what waits for remote-write endpoints, and changes
 * nothing. */
#include "controller/flags.h"
#include "controller/role.h"
#include "controller/terminal.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/file.h"
#include "exporter/base/glob.h"
#include "remotewrite/body.h"
#include "remotewrite/format.h"

#include <errno.h>
#include <fts.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEGMENT_FILE_MAX = 256 << 20, TEXT_MAX = 1 << 30 };

/* What a path is, as its name tells: <storage path>/remote-write/<endpoint>/<segment>. The value is how far
 * below it the endpoints' folders are. */
enum spool_root {
    ROOT_OF_ENDPOINTS = 1, /* remote-write */
    ROOT_OF_STORAGE = 2,   /* another: a storage path, an endpoint's folder or a segment */
};

static const char spools_name[] = "remote-write";

/* How to read records, and the totals. */
struct spool_scan {
    void (*on_record)(struct spool_scan *l, const struct segment_item *item);
    bool list;
    enum spool_root root;
    uint64_t files, aside, records, samples, damaged_bytes, damaged_places;
    int64_t first_ms, last_ms; /* of the file */
    bool failed;
};

static void spool_count(struct spool_scan *l, const struct segment_item *item)
{
    if (item->head.first_ms < l->first_ms)
        l->first_ms = item->head.first_ms;
    if (item->head.last_ms > l->last_ms)
        l->last_ms = item->head.last_ms;
    l->records++;
    l->samples += item->head.samples;
}

static void spool_verify(struct spool_scan *l, const struct segment_item *item)
{
    CLEANUP(cleanup_free) struct str *series = NULL;
    BUF_AUTO(message, BODY_MAX);
    size_t n = 0;

    spool_count(l, item);
    if (body_unpack(item->payload, &message) < 0 || body_series(buf_str(&message), &series, &n) < 0 ||
        n != item->head.samples) {
        l->damaged_places++;
        l->damaged_bytes += item->n;
    }
}

static void spool_print(struct spool_scan *l, const struct segment_item *item)
{
    BUF_AUTO(text, TEXT_MAX);

    spool_count(l, item);
    if (body_print(item->payload, &text) < 0)
        l->failed = true;
    else if (text.n)
        (void)terminal_print_lines(stdout, buf_str(&text));
}

static void spool_complain(struct spool_scan *l, const char *path, const char *why)
{
    terminal_printf(stderr, "%s: %s\n", path, why);
    l->failed = true;
}

static void spool_scan_bytes(struct spool_scan *l, const char *path, struct str bytes)
{
    struct segment_reader reader = {.bytes = bytes};
    struct segment_item item;
    enum segment_found what;

    while ((what = segment_next(&reader, &item)) != SEGMENT_END) {
        if (what == SEGMENT_RECORD) {
            l->on_record(l, &item);
            continue;
        }
        l->damaged_places++;
        l->damaged_bytes += item.n;
        terminal_printf(stderr, "%s: %s at byte %zu, %zu bytes\n", path,
                        what == SEGMENT_TORN ? "truncated" : "damaged", item.at, item.n);
        if (what == SEGMENT_TORN)
            break;
    }
}

/* Whether it has gone since its folder was listed: an agent that is running removes what was delivered. */
static bool spool_is_gone(const FTSENT *e, int error)
{
    return error == ENOENT && e->fts_level > 0;
}

static void spool_scan_file(struct spool_scan *l, const FTSENT *e)
{
    const char *path = e->fts_path;
    uint64_t records = l->records, samples = l->samples;
    char first[32] = "-", last[32] = "-";
    BUF_AUTO(bytes, SEGMENT_FILE_MAX);
    int r = file_read(path, &bytes);

    if (spool_is_gone(e, -r))
        return;
    l->files++;
    l->first_ms = INT64_MAX;
    l->last_ms = INT64_MIN;
    if (r < 0) {
        spool_complain(l, path, r == -EFBIG ? "too large for a segment, more than 256 MiB" : strerror(-r));
        return;
    }
    if (segment_has_other_version(buf_str(&bytes))) {
        spool_complain(l, path, "segment of another version of dynamic-scoring");
        return;
    }
    if (bytes.n && !str_starts(buf_str(&bytes), str_of(segment_magic)))
        terminal_printf(stderr, "%s: does not begin as a segment\n", path);
    spool_scan_bytes(l, path, buf_str(&bytes));
    if (!l->list)
        return;
    if (l->records > records) {
        unix_ms_format((unix_ms){l->first_ms}, first);
        unix_ms_format((unix_ms){l->last_ms}, last);
    }
    terminal_printf(stdout, "%s  %zu bytes  %" PRIu64 " records  %" PRIu64 " samples  %s to %s\n", path,
                    bytes.n, l->records - records, l->samples - samples, first, last);
}

static bool spool_is_segment(const FTSENT *e)
{
    return glob_match("?*.seg", e->fts_name) || (e->fts_level == 0 && e->fts_info == FTS_F);
}

/* What was set aside is no longer sent, and is listed only. */
static void spool_scan_entry(struct spool_scan *l, const FTSENT *e)
{
    if (spool_is_segment(e)) {
        spool_scan_file(l, e);
    } else if (e->fts_info == FTS_DNR || e->fts_info == FTS_ERR || e->fts_info == FTS_NS) {
        if (!spool_is_gone(e, e->fts_errno))
            spool_complain(l, e->fts_path, strerror(e->fts_errno));
    } else if (e->fts_info == FTS_F && l->root == ROOT_OF_STORAGE && e->fts_level == ROOT_OF_STORAGE) {
        spool_complain(l, e->fts_path, strerror(ENOTDIR));
    } else if (glob_match("?*.seg.damaged", e->fts_name) || glob_match("?*.seg.unknown", e->fts_name)) {
        l->aside++;
        if (l->list)
            terminal_printf(stdout, "%s  %lld bytes  set aside, not sent\n", e->fts_path,
                            (long long)e->fts_statp->st_size);
    }
}

static int spool_order(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* A storage path may be called so, too: then it has the folder of that name. */
static enum spool_root spool_root_of(const char *path)
{
    CLEANUP(cleanup_free) char *whole = realpath(path, NULL);
    CLEANUP(cleanup_free) char *below = xasprintf("%s/%s", path, spools_name);
    const char *slash = whole ? strrchr(whole, '/') : NULL;
    bool is_called_so = slash && strcmp(slash + 1, spools_name) == 0;

    return is_called_so && access(below, F_OK) < 0 ? ROOT_OF_ENDPOINTS : ROOT_OF_STORAGE;
}

/* Folders that have no segments to look at. */
static bool spool_skips(const struct spool_scan *l, const FTSENT *e)
{
    bool is_other = l->root == ROOT_OF_STORAGE && e->fts_level == 1 && strcmp(e->fts_name, spools_name) != 0;

    return e->fts_info == FTS_D && (is_other || e->fts_level > (int)l->root || spool_is_segment(e));
}

/* A segment, an endpoint's folder, the folder of all endpoints, or a storage path. */
static void spool_scan(struct spool_scan *l, char *path)
{
    FTS *tree = fts_open((char *[]){path, NULL}, FTS_LOGICAL | FTS_NOCHDIR, spool_order);
    uint64_t before = l->files + l->aside;
    FTSENT *e;

    if (!tree)
        spool_complain(l, path, strerror(errno));
    l->root = spool_root_of(path);
    while (tree && (e = fts_read(tree))) {
        if (spool_skips(l, e))
            (void)fts_set(tree, e, FTS_SKIP);
        if (e->fts_info != FTS_DP)
            spool_scan_entry(l, e);
    }
    if (tree)
        (void)fts_close(tree);
    if (l->files + l->aside == before && !l->failed)
        terminal_printf(stderr, "%s: no segments\n", path);
}

static int spool_main(char **argv)
{
    struct spool_scan l = {.on_record = spool_count};
    const char *what;
    int status;

    if (!flags_parse(&command_spool, argv, NULL, &status))
        return status;
    what = cstr(argv[1]);
    l.list = strcmp(what, "ls") == 0;
    if (strcmp(what, "verify") == 0)
        l.on_record = spool_verify;
    else if (strcmp(what, "export") == 0)
        l.on_record = spool_print;
    if ((l.on_record == spool_count && !l.list) || !argv[2])
        return flags_error(&command_spool, "expected ls, verify or export, and a path", "");
    for (char **path = argv + 2; *path; path++)
        spool_scan(&l, *path);
    if (l.on_record != spool_print && l.files + l.aside > 0) {
        terminal_printf(stdout,
                        "%" PRIu64 " records, %" PRIu64 " samples, %" PRIu64 " damaged places, %" PRIu64
                        " bytes lost",
                        l.records, l.samples, l.damaged_places, l.damaged_bytes);
        if (l.aside)
            terminal_printf(stdout, ", %" PRIu64 " files set aside", l.aside);
        terminal_printf(stdout, "\n");
    }
    return l.failed || l.damaged_places || fflush(stdout) != 0;
}

const struct command command_spool = {
    .name = "spool",
    .arguments = "ls|verify|export PATH...",
    .help = "Inspect a remote-write spool: a segment, an endpoint's directory, that of all endpoints, or the "
            "storage path.",
    .flags = &(const struct flag){.name = NULL},
    .takes_arguments = true,
    .run = spool_main,
};
