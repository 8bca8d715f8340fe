/* Runs a fuzz target over the files of the given folders: what ctest does where libFuzzer is not there. */
#include "exporter/base/def.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { INPUT_MAX = 16 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void cleanup_closedir(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}

/* A block of exactly its size, so that AddressSanitizer sees a read past the end. */
static bool run_file(int folder, const char *name, size_t size)
{
    CLEANUP(cleanup_close) int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
    CLEANUP(cleanup_free) uint8_t *data = malloc(size ? size : 1);
    size_t n = 0;
    ssize_t got = 1;

    if (fd < 0 || !data)
        return false;
    while (n < size && (got = read(fd, data + n, size - n)) > 0)
        n += (size_t)got;
    if (n < size)
        return false;
    (void)LLVMFuzzerTestOneInput(data, size);
    return true;
}

/* The number of files run, or -1 after saying what is wrong. */
static long run_folder(const char *path)
{
    CLEANUP(cleanup_closedir) DIR *d = opendir(path);
    const struct dirent *entry;
    struct stat st;
    long n = 0;

    if (!d) {
        (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    while ((entry = readdir(d))) {
        if (fstatat(dirfd(d), entry->d_name, &st, 0) < 0 || !S_ISREG(st.st_mode))
            continue;
        /* Named before it runs: the last line before a crash says which file it was. */
        (void)printf("%s/%s\n", path, entry->d_name);
        (void)fflush(stdout);
        if (st.st_size > INPUT_MAX || !run_file(dirfd(d), entry->d_name, (size_t)st.st_size)) {
            (void)fprintf(stderr, "%s/%s: cannot be read\n", path, entry->d_name);
            return -1;
        }
        n++;
    }
    return n;
}

int main(int argc, char **argv)
{
    long all = 0;

    for (int i = 1; i < argc; i++) {
        long n = run_folder(argv[i]);
        if (n < 0)
            return 1;
        all += n;
    }
    (void)printf("%ld inputs\n", all);
    return all > 0 ? 0 : 1;
}
