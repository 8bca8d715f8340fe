/* `dynamic-scoring spool ls|verify|export PATH`: reads what waits for remote-write endpoints, and changes
 * nothing. */
#include "controller/flags.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/file.h"
#include "remotewrite/body.h"
#include "remotewrite/format.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

enum { SEGMENT_FILE_MAX = 256 << 20, TEXT_MAX = 1 << 30 };

/* How to read records, and the totals. */
struct spool_scan {
    void (*on_record)(struct spool_scan *l, const struct segment_item *item);
    bool list;
    uint64_t files, aside, records, samples, damaged_bytes, damaged_places;
    int64_t first_ms, last_ms;
    bool failed;
};

static void spool_count(struct spool_scan *l, const struct segment_item *item)
{
    if (!l->records || item->head.first_ms < l->first_ms)
        l->first_ms = item->head.first_ms;
    if (!l->records || item->head.last_ms > l->last_ms)
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
        (void)fwrite(text.p, 1, text.n, stdout);
}

static void spool_complain(struct spool_scan *l, const char *path, const char *why)
{
    (void)fprintf(stderr, "%s: %s\n", path, why);
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
        (void)fprintf(stderr, "%s: %s at byte %zu, %zu bytes\n", path,
                      what == SEGMENT_TORN ? "truncated" : "damaged", item.at, item.n);
        if (what == SEGMENT_TORN)
            break;
    }
}

static void spool_print_segment(const struct spool_scan *l, const char *path, size_t bytes)
{
    char first[32] = "-", last[32] = "-";

    if (l->records) {
        unix_ms_format((unix_ms){l->first_ms}, first);
        unix_ms_format((unix_ms){l->last_ms}, last);
    }
    (void)printf("%s  %zu bytes  %" PRIu64 " records  %" PRIu64 " samples  %s to %s\n", path, bytes,
                 l->records, l->samples, first, last);
}

static void spool_scan_file(struct spool_scan *total, const char *path)
{
    BUF_AUTO(bytes, SEGMENT_FILE_MAX);
    struct spool_scan l = {.on_record = total->on_record, .list = total->list};
    int r = file_read(path, &bytes);

    total->files++;
    if (r < 0) {
        spool_complain(total, path,
                       r == -EFBIG ? "too large for a segment, more than 256 MiB" : strerror(-r));
        return;
    }
    if (segment_has_other_version(buf_str(&bytes))) {
        spool_complain(total, path, "segment of another version of dynamic-scoring");
        return;
    }
    if (bytes.n && !str_starts(buf_str(&bytes), str_of(segment_magic)))
        (void)fprintf(stderr, "%s: does not begin as a segment\n", path);
    spool_scan_bytes(&l, path, buf_str(&bytes));
    if (l.list)
        spool_print_segment(&l, path, bytes.n);
    total->records += l.records;
    total->samples += l.samples;
    total->damaged_places += l.damaged_places;
    total->damaged_bytes += l.damaged_bytes;
    total->failed = total->failed || l.failed;
}

static bool spool_name_ends(const char *name, const char *suffix)
{
    size_t n = strlen(name), end = strlen(suffix);

    return n > end && strcmp(name + n - end, suffix) == 0;
}

static int spool_is_segment(const struct dirent *d)
{
    return spool_name_ends(d->d_name, ".seg") || spool_name_ends(d->d_name, ".seg.damaged") ||
           spool_name_ends(d->d_name, ".seg.unknown");
}

static int spool_is_visible(const struct dirent *d)
{
    return d->d_name[0] != '.';
}

/* A file of an endpoint's directory. What was set aside is no longer sent, and is listed only. */
static void spool_scan_entry(struct spool_scan *l, const char *path)
{
    struct stat st;

    if (spool_name_ends(path, ".seg")) {
        spool_scan_file(l, path);
        return;
    }
    l->aside++;
    if (l->list && stat(path, &st) == 0)
        (void)printf("%s  %lld bytes  set aside, not sent\n", path, (long long)st.st_size);
}

/* The segments of an endpoint's directory or, if `all`, those of each endpoint's directory in it. */
static void spool_scan_dir(struct spool_scan *l, const char *dir, bool all)
{
    struct dirent **list;
    int n = scandir(dir, &list, all ? spool_is_visible : spool_is_segment, alphasort);

    if (n < 0) {
        spool_complain(l, dir, strerror(errno));
        return;
    }
    for (int i = 0; i < n; i++) {
        CLEANUP(cleanup_free) char *path = xasprintf("%s/%s", dir, list[i]->d_name);

        if (all)
            spool_scan_dir(l, path, false);
        else
            spool_scan_entry(l, path);
        free(list[i]);
    }
    free(list);
}

/* A segment, an endpoint's directory, or a whole storage path. */
static void spool_scan(struct spool_scan *l, const char *path)
{
    CLEANUP(cleanup_free) char *all = xasprintf("%s/remote-write", path);
    struct stat st;
    uint64_t before = l->files + l->aside;

    if (stat(path, &st) < 0)
        spool_complain(l, path, strerror(errno));
    else if (!S_ISDIR(st.st_mode))
        spool_scan_file(l, path);
    else if (stat(all, &st) == 0)
        spool_scan_dir(l, all, true);
    else
        spool_scan_dir(l, path, false);
    if (l->files + l->aside == before && !l->failed)
        (void)fprintf(stderr, "%s: no segments\n", path);
}

static int spool_main(char **argv)
{
    struct spool_scan l = {.on_record = spool_count};
    const char *what;
    int status;

    if (!flags_parse(&command_spool, argv, NULL, &status))
        return status;
    what = cstr(argv[1]);
    if (strcmp(what, "ls") == 0)
        l.list = true;
    else if (strcmp(what, "verify") == 0)
        l.on_record = spool_verify;
    else if (strcmp(what, "export") == 0)
        l.on_record = spool_print;
    else
        what = "";
    if (!*what || !argv[2])
        return flags_error(&command_spool, "expected ls, verify or export, and a path", "");
    for (char **path = argv + 2; *path; path++)
        spool_scan(&l, *path);
    if (l.on_record != spool_print && l.files + l.aside > 0) {
        (void)printf("%" PRIu64 " records, %" PRIu64 " samples, %" PRIu64 " damaged places, %" PRIu64
                     " bytes lost",
                     l.records, l.samples, l.damaged_places, l.damaged_bytes);
        if (l.aside)
            (void)printf(", %" PRIu64 " files set aside", l.aside);
        (void)printf("\n");
    }
    return l.failed || l.damaged_places || fflush(stdout) != 0;
}

const struct command command_spool = {
    .name = "spool",
    .arguments = "ls|verify|export PATH...",
    .help = "Inspect a remote-write spool: a segment, an endpoint's directory, or the storage path.",
    .flags = &(const struct flag){.name = NULL},
    .takes_arguments = true,
    .run = spool_main,
};
