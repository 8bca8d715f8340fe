#include "exporter/base/buf.h"

#include "exporter/base/clock.h"
#include "exporter/base/map.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* ---- Large memory. Bodies are written once and freed, and their fresh pages were half of the cost of a
 * large round. So a few blocks stay for the next ones; the kernel may take their pages ---- */

enum { HUGE_BYTES = 2 << 20, SPARES = 4, SPARE_BYTES = 1 << 20 };

static char *spares[SPARES]; /* atomic; the last one kept is first. A block begins with its size */

/* For the whole pages in these n bytes, of which there are several. A page has 4 KiB on amd64 and s390x,
 * mostly 64 KiB on ppc64le, and either on arm64. */
static void advise(char *p, size_t n, int advice)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t skip = -(uintptr_t)p % page;

    (void)madvise(p + skip, (n - skip) / page * page, advice);
}

/* A block of *n to 2 * *n bytes, but of no more than max; NULL without one. */
static char *spare_take(size_t *n, size_t max)
{
    for (size_t i = 0, has = 0; i < SPARES; i++, has = 0) {
        char *p = __atomic_exchange_n(&spares[i], NULL, __ATOMIC_ACQUIRE);

        if (p)
            memcpy(&has, p, sizeof(has));
        if (has >= *n && has / 2 <= *n && has <= max) {
            *n = has;
            return p;
        }
        free(p ? __atomic_exchange_n(&spares[i], p, __ATOMIC_ACQ_REL) : NULL);
    }
    return NULL;
}

void buf_trim(void)
{
    char *p = NULL;

    for (size_t i = SPARES; i-- > 0 && !p;)
        p = __atomic_exchange_n(&spares[i], NULL, __ATOMIC_ACQUIRE);
    free(p);
}

void buf_keep(struct buf *b)
{
    if (b->cap >= SPARE_BYTES) {
        advise(b->p, b->cap, MADV_FREE);
        memcpy(b->p, &b->cap, sizeof(b->cap));
        for (size_t i = 0; i < SPARES; i++)
            b->p = __atomic_exchange_n(&spares[i], b->p, __ATOMIC_ACQ_REL);
    }
    buf_done(b);
}

void buf_done(struct buf *b)
{
    free(b->p);
    *b = (struct buf){.max = b->max};
}

/* Grows by half, so that large bodies (which the allocator moves by remapping pages, not by copying) waste
 * little. */
static int buf_grow(struct buf *b, size_t need)
{
    size_t cap = size_max(b->cap + b->cap / 2, 64);
    char *p;

    cap = size_min(size_max(cap, need), b->max);
    p = !b->p && cap >= SPARE_BYTES ? spare_take(&cap, b->max) : NULL;
    p = p ?: realloc(b->p, cap);
    if (!p)
        return -ENOMEM;
    b->p = p;
    b->cap = cap;
    if (cap >= 2 * HUGE_BYTES)
        advise(p, cap, MADV_HUGEPAGE);
    return 0;
}

int buf_room(struct buf *b, size_t n, char **ret)
{
    if (n > b->max || b->n > b->max - n)
        return -EFBIG;
    if (b->cap < b->n + n || !b->p) {
        int r = buf_grow(b, size_max(b->n + n, 1));
        if (r < 0)
            return r;
    }
    *ret = b->p + b->n;
    return 0;
}

int buf_put(struct buf *b, const void *p, size_t n)
{
    char *to;
    int r;

    if (n == 0)
        return 0;
    r = buf_room(b, n, &to);
    if (r < 0)
        return r;
    memcpy(to, p, n);
    b->n += n;
    return 0;
}

int buf_putc(struct buf *b, char c)
{
    return buf_put(b, &c, 1);
}

int buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
    char small[256], *large;
    va_list again;
    int n, r;

    va_copy(again, ap);
    n = vsnprintf(small, sizeof(small), fmt, again);
    va_end(again);
    if (n < 0)
        return -EINVAL;
    if ((size_t)n < sizeof(small))
        return buf_put(b, small, (size_t)n);
    large = xvasprintf(fmt, ap);
    r = buf_put(b, large, (size_t)n);
    free(large);
    return r;
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap;
    int r;

    va_start(ap, fmt);
    r = buf_vprintf(b, fmt, ap);
    va_end(ap);
    return r;
}

void buf_shrink(struct buf *b)
{
    if (b->n == 0) {
        buf_done(b);
    } else if (b->n < b->cap) {
        b->p = xrealloc(b->p, b->n);
        b->cap = b->n;
    }
}

/* ---- Files ---- */

/* False after the deadline. A pipe without a writer counts as readable only once it has had one. */
static bool wait_for_bytes(int fd, mono_ms deadline)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int64_t left = mono_diff(clock_system.mono(&clock_system), deadline);

    return left > 0 && poll(&p, 1, (int)left) != 0;
}

/* The bytes read, at most 0 at the end. -EFBIG, -ENOMEM, or errno of read. */
static ssize_t read_some(int fd, size_t want, struct buf *into)
{
    char *to;
    ssize_t got;
    int r = buf_room(into, size_min(want, into->max - into->n), &to);

    if (r == 0 && into->n == into->max)
        return read(fd, &(char){0}, 1) == 0 ? 0 : -EFBIG;
    if (r < 0)
        return r;
    got = read(fd, to, size_min(want, into->max - into->n));
    if (got > 0)
        into->n += (size_t)got;
    return got < 0 ? -errno : got;
}

int file_read_within(const char *path, struct buf *into, int64_t ms)
{
    CLEANUP(cleanup_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    mono_ms deadline = mono_add(clock_system.mono(&clock_system), ms);
    size_t mark = into->n;
    struct stat st;
    ssize_t got;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    do {
        /* One byte more than the file's size, so that the end is seen without growing the buffer. */
        size_t want = st.st_size > 0 && into->n == mark ? (size_t)st.st_size + 1 : 4096;

        got = ms && !S_ISREG(st.st_mode) && !wait_for_bytes(fd, deadline) ? -ETIMEDOUT
                                                                          : read_some(fd, want, into);
    } while (got > 0 || got == -EINTR || (got == -EAGAIN && ms));
    if (got < 0)
        buf_truncate(into, mark);
    return (int)got;
}

int file_read(const char *path, struct buf *into)
{
    return file_read_within(path, into, 0);
}

uint64_t file_stamp(const char *path)
{
    struct stat st;

    if (stat(path, &st) < 0)
        return 0;
    return hash_chain_u64(hash_chain_u64(hash_chain_u64(st.st_dev, st.st_ino), (uint64_t)st.st_size),
                          (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec);
}
