#include "exporter/base/buf.h"
#include "exporter/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

static char dir[64], path[128];

static int setup(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof(dir), "/tmp/test_file.XXXXXX");
    if (!mkdtemp(dir))
        return -1;
    (void)snprintf(path, sizeof(path), "%s/f", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(dir);
}

static void write_file(size_t n)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    for (size_t i = 0; i < n; i++)
        assert_true(putc((int)(i * 7 & 0xff), f) != EOF);
    assert_int_equal(fclose(f), 0);
}

static void assert_bytes(const struct buf *b, size_t from, size_t n)
{
    assert_int_equal(b->n, from + n);
    for (size_t i = 0; i < n; i++)
        assert_int_equal((unsigned char)b->p[from + i], i * 7 & 0xff);
}

static void reads_any_size(void **state)
{
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 100000};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        BUF_AUTO(b, 1u << 20);
        BUF_AUTO(just, sizes[i]);
        write_file(sizes[i]);
        assert_int_equal(file_read(path, &b), 0);
        assert_bytes(&b, 0, sizes[i]);
        assert_int_equal(file_read(path, &just), 0); /* exactly full is not too full */
        assert_bytes(&just, 0, sizes[i]);
    }
}

static void appends(void **state)
{
    BUF_AUTO(b, 1u << 20);

    (void)state;
    write_file(5000);
    buf_puts(&b, "kept");
    assert_int_equal(buf_failed(&b), 0);
    assert_int_equal(file_read(path, &b), 0);
    assert_bytes(&b, 4, 5000);
    assert_memory_equal(b.p, "kept", 4);
}

static void keeps_to_the_ceiling(void **state)
{
    static const size_t ceilings[] = {0, 1, 4, 5, 4095, 5003};

    (void)state;
    write_file(5000);
    for (size_t i = 0; i < ARRAY_SIZE(ceilings); i++) {
        BUF_AUTO(b, ceilings[i]);
        size_t kept = size_min(4, ceilings[i]);
        buf_put(&b, "kept", kept);
        assert_int_equal(buf_failed(&b), 0);
        assert_int_equal(file_read(path, &b), -EFBIG);
        assert_int_equal(b.n, kept);
    }
}

/* Files of /proc say that they are empty. */
static void reads_files_of_unknown_size(void **state)
{
    BUF_AUTO(b, 1u << 20);

    (void)state;
    assert_int_equal(file_read("/proc/self/status", &b), 0);
    assert_non_null(memmem(b.p, b.n, "\nPid:", 5));
}

static void says_why_not(void **state)
{
    BUF_AUTO(b, 100);
    char below[160];

    (void)state;
    assert_int_equal(file_read(dir, &b), -EISDIR);
    (void)unlink(path);
    assert_int_equal(file_read(path, &b), -ENOENT);
    write_file(1);
    (void)snprintf(below, sizeof(below), "%s/x", path);
    assert_int_equal(file_read(below, &b), -ENOTDIR);
    assert_int_equal(file_read("", &b), -ENOENT);
    assert_int_equal(b.n, 0);
}

/* A pipe that nobody writes to must not hold the program. */
static void does_not_wait_for_a_pipe(void **state)
{
    BUF_AUTO(b, 100);

    (void)state;
    (void)unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(file_read(path, &b), 0);
    assert_int_equal(b.n, 0);
}

static void *write_in_two_parts(void *arg)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC); /* waits for the reader */

    (void)arg;
    assert_int_equal(write(fd, "one ", 4), 4);
    assert_int_equal(write(fd, "two", 3), 3);
    (void)close(fd);
    return NULL;
}

static void waits_for_the_writer_of_a_pipe(void **state)
{
    BUF_AUTO(b, 100);
    pthread_t writer;

    (void)state;
    (void)unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(file_read_within(path, &b, 1), -ETIMEDOUT);
    assert_int_equal(pthread_create(&writer, NULL, write_in_two_parts, NULL), 0);
    assert_int_equal(file_read_within(path, &b, 60000), 0);
    assert_int_equal(pthread_join(writer, NULL), 0);
    assert_true(str_eq(buf_str(&b), STR("one two")));
}

/* A writer that stops half-way does not hold the program. */
static void gives_up_on_a_writer_that_stops(void **state)
{
    BUF_AUTO(b, 100);
    int writer;

    (void)state;
    (void)unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    writer = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(write(writer, "half", 4), 4);
    assert_int_equal(file_read_within(path, &b, 5), -ETIMEDOUT);
    assert_int_equal(b.n, 0);
    (void)close(writer);
}

static void leaves_no_descriptor_open(void **state)
{
    int before = open("/dev/null", O_RDONLY), after;

    (void)state;
    (void)close(before);
    (void)unlink(path);
    write_file(5000);
    for (int i = 0; i < 3; i++) {
        BUF_AUTO(b, 100);
        assert_int_equal(file_read(path, &b), -EFBIG);
        assert_int_equal(file_read(dir, &b), -EISDIR);
    }
    after = open("/dev/null", O_RDONLY);
    (void)close(after);
    assert_int_equal(before, after);
}

static void stamps_a_file_by_what_a_change_alters(void **state)
{
    uint64_t first, second;
    char stamped[256], link[256];
    FILE *f;

    (void)state;
    (void)snprintf(stamped, sizeof(stamped), "%s/stamped", dir);
    (void)snprintf(link, sizeof(link), "%s/link", dir);
    first = file_stamp(stamped);
    assert_true(first == 0);
    f = fopen(stamped, "w");
    assert_non_null(f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(symlink(stamped, link), 0);
    first = file_stamp(link);
    second = file_stamp(stamped);
    assert_true(first == second && first);
    assert_int_equal(utimensat(AT_FDCWD, stamped, (struct timespec[]){{1, 0}, {1, 1}}, 0), 0);
    second = file_stamp(link);
    assert_true(first != second);
    assert_int_equal(unlink(link) | unlink(stamped), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_any_size),
        cmocka_unit_test(appends),
        cmocka_unit_test(keeps_to_the_ceiling),
        cmocka_unit_test(reads_files_of_unknown_size),
        cmocka_unit_test(says_why_not),
        cmocka_unit_test(does_not_wait_for_a_pipe),
        cmocka_unit_test(waits_for_the_writer_of_a_pipe),
        cmocka_unit_test(gives_up_on_a_writer_that_stops),
        cmocka_unit_test(leaves_no_descriptor_open),
        cmocka_unit_test(stamps_a_file_by_what_a_change_alters),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
