#include "exporter/tsdb/snapshot.h"

#include "test/disk_faults.h"
#include "test/oom.h"
#include "test/unit/tsdb/store.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#define PLENTY (UINT64_C(1) << 30)

enum { SERIES = 40, SAMPLES = 300 };

static char folder[] = "/tmp/test-snapshot.XXXXXX";
static char file[64], temporary[64];

static int make_folder(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    (void)snprintf(file, sizeof(file), "%s/otlp-series", folder);
    (void)snprintf(temporary, sizeof(temporary), "%s/otlp-series.tmp", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    (void)unlink(file);
    (void)unlink(temporary);
    return rmdir(folder);
}

static double sample_value(unsigned series, unsigned i)
{
    return series % 2 ? (double)(series * 1000 + i) : 1.0 / (series + i + 3);
}

/* Series with samples of the last hour. */
static struct tsdb *new_store(unsigned series, unsigned samples)
{
    struct tsdb *t = store_new(PLENTY, SERIES);
    char text[64];

    tsdb_set_age(t, 120 * MINUTE);
    for (unsigned s = 0; s < series; s++) {
        uint64_t ref = 0;

        (void)snprintf(text, sizeof(text), "__name__=m%u;pod=p%u", s % 3, s);
        assert_int_equal(store_ref(t, text, &ref), TSDB_OK);
        for (unsigned i = 0; i < samples; i++)
            assert_int_equal(store_append(t, ref, NOW - 60 * MINUTE + i * 10000, sample_value(s, i)),
                             TSDB_OK);
    }
    return t;
}

static void check_store(struct tsdb *t, unsigned series, unsigned samples)
{
    struct tsdb_view *v = store_view(t, NULL, 0, INT64_MIN + 1, INT64_MAX);

    assert_int_equal(tsdb_view_count(v), series);
    for (size_t i = 0; i < series; i++) {
        size_t n;
        const struct tsdb_label *labels = tsdb_view_labels(v, i, &n);
        struct str pod = labels[1].value;
        unsigned s, k = 0;
        uint64_t number;
        struct tsdb_iter it;
        int64_t at;
        double x;

        assert_true(str_to_u64((struct str){pod.p + 1, pod.n - 1}, &number));
        s = (unsigned)number;
        for (tsdb_iter_init(&it, v, i); tsdb_iter_next(&it, &at, &x); k++)
            assert_true(at == NOW - 60 * MINUTE + k * 10000 && x == sample_value(s, k));
        assert_int_equal(k, samples);
    }
    (void)tsdb_view_free(v);
}

static void loads_what_was_saved(void **state)
{
    struct tsdb *t = new_store(SERIES, SAMPLES);
    struct snapshot_loaded loaded;
    int64_t refused_ms;
    uint64_t ref;

    (void)state;
    refused_ms = store_now;
    tsdb_set_limits(t, PLENTY, SERIES);
    assert_int_equal(store_ref(t, "__name__=refused", &ref), TSDB_SERIES_LIMIT);
    assert_int_equal(snapshot_save(t, folder), 0);
    (void)tsdb_free(t);
    t = store_new(PLENTY, SERIES); /* of another age */
    assert_int_equal(snapshot_load(t, folder, &loaded), 0);
    assert_int_equal(loaded.series, SERIES);
    assert_int_equal(loaded.samples, SERIES * SAMPLES);
    check_store(t, SERIES, SAMPLES);
    assert_int_equal(store_stats(t).series_limit_ms, refused_ms);
    assert_int_equal(store_stats(t).bytes_limit_ms, 0);
    assert_int_equal(snapshot_save(t, folder), 0); /* over an earlier file */
    (void)tsdb_free(t);
    assert_int_equal(access(temporary, F_OK), -1);
}

static void begins_empty_without_a_file(void **state)
{
    struct tsdb *t = store_new(PLENTY, SERIES);
    struct snapshot_loaded loaded;

    (void)state;
    (void)unlink(file);
    assert_int_equal(snapshot_load(t, folder, &loaded), 0);
    assert_int_equal(loaded.series, 0);
    assert_int_equal(snapshot_load(t, "/nonexistent/folder", &loaded), 0);
    assert_int_equal(snapshot_save(t, "/nonexistent/folder"), -ENOENT);
    (void)tsdb_free(t);
}

static void leaves_out_samples_that_have_become_too_old(void **state)
{
    struct tsdb *t = new_store(2, SAMPLES);
    struct snapshot_loaded loaded;

    (void)state;
    assert_int_equal(snapshot_save(t, folder), 0);
    (void)tsdb_free(t);
    t = store_new(PLENTY, SERIES);
    store_now = NOW + 80 * MINUTE; /* 20 minutes of 50 are left */
    assert_int_equal(snapshot_load(t, folder, &loaded), 0);
    assert_int_equal(loaded.samples, 2 * (SAMPLES - 20 * 6));
    (void)tsdb_free(t);
}

static void keeps_to_the_limits_of_today(void **state)
{
    struct tsdb *t = new_store(SERIES, 3);
    struct snapshot_loaded loaded;

    (void)state;
    assert_int_equal(snapshot_save(t, folder), 0);
    tsdb_free(t);
    t = store_new(PLENTY, 7);
    assert_int_equal(snapshot_load(t, folder, &loaded), 0);
    assert_int_equal(loaded.series, 7);
    assert_int_equal(store_stats(t).series_refused, SERIES - 7);
    (void)tsdb_free(t);
}

static void write_file(const char *p, size_t n)
{
    FILE *f = fopen(file, "we");

    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

static void loads_what_precedes_damage(void **state)
{
    struct tsdb *t = new_store(6, 20);
    static char bytes[64 << 10], damaged[64 << 10];
    FILE *f;
    size_t n;

    (void)state;
    assert_int_equal(snapshot_save(t, folder), 0);
    (void)tsdb_free(t);
    f = fopen(file, "re");
    assert_non_null(f);
    n = fread(bytes, 1, sizeof(bytes), f);
    assert_in_range(n, 500, sizeof(bytes) - 1);
    (void)fclose(f);
    for (size_t i = 0; i < 2 * n; i++) {
        struct snapshot_loaded loaded;
        size_t at = i / 2;

        memcpy(damaged, bytes, n);
        damaged[at] = (char)(damaged[at] ^ 1 << at % 8);
        write_file(damaged, i % 2 ? n : at); /* a changed bit, or a file that ends there */
        t = store_new(PLENTY, SERIES);
        assert_int_equal(snapshot_load(t, folder, &loaded), -EBADMSG);
        assert_true(loaded.series <= 6);
        check_store(t, (unsigned)loaded.series, 20);
        (void)tsdb_free(t);
    }
}

static void keeps_the_earlier_file_when_the_disk_fails(void **state)
{
    struct tsdb *t = new_store(SERIES, SAMPLES), *other;
    struct snapshot_loaded loaded;
    bool failed = true;

    (void)state;
    assert_int_equal(snapshot_save(t, folder), 0);
    for (long nth = 1; failed; nth++) {
        int r;

        disk_fail_at(nth, 2, nth % 2 ? ENOSPC : EIO); /* a short write, and one that fails */
        r = snapshot_save(t, folder);
        failed = disk_has_failed();
        disk_fail_at(0, 0, 0);
        assert_int_equal(r < 0, failed);
        other = store_new(PLENTY, SERIES);
        assert_int_equal(snapshot_load(other, folder, &loaded), 0);
        check_store(other, SERIES, SAMPLES);
        (void)tsdb_free(other);
    }
    (void)tsdb_free(t);
}

static void reports_a_disk_that_cannot_be_read(void **state)
{
    struct tsdb *t = new_store(SERIES, SAMPLES);
    bool failed = true;

    (void)state;
    assert_int_equal(snapshot_save(t, folder), 0);
    (void)tsdb_free(t);
    for (long nth = 1; failed; nth++) {
        struct snapshot_loaded loaded;
        int r;

        t = store_new(PLENTY, SERIES);
        disk_fail_at(nth, 1, EIO);
        r = snapshot_load(t, folder, &loaded);
        failed = disk_has_failed();
        disk_fail_at(0, 0, 0);
        assert_int_equal(r, failed ? -EIO : 0);
        check_store(t, (unsigned)loaded.series, SAMPLES);
        (void)tsdb_free(t);
    }
}

static void survives_each_failed_allocation(void **state)
{
    struct tsdb *t = new_store(3, 20);

    (void)state;
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        struct tsdb *other = NULL;
        struct snapshot_loaded loaded;
        int r = snapshot_save(t, folder);

        if (r == 0)
            r = tsdb_new(&other, &(struct tsdb_options){&store_clock, PLENTY, SERIES});
        if (r == 0)
            r = snapshot_load(other, folder, &loaded);
        assert_true(r == 0 || (r == -ENOMEM && oom_happened()));
        (void)tsdb_free(other);
    }
    (void)tsdb_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loads_what_was_saved),
        cmocka_unit_test(begins_empty_without_a_file),
        cmocka_unit_test(leaves_out_samples_that_have_become_too_old),
        cmocka_unit_test(keeps_to_the_limits_of_today),
        cmocka_unit_test(loads_what_precedes_damage),
        cmocka_unit_test(keeps_the_earlier_file_when_the_disk_fails),
        cmocka_unit_test(reports_a_disk_that_cannot_be_read),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
