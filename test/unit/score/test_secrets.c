#include "exporter/base/buf.h"
#include "exporter/score/secrets.h"
#include "test/oom.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cmocka.h>

static char dir[64];
static struct secret_files files;

static void path_of(const char *name, const char *key, char out[256])
{
    (void)snprintf(out, 256, "%s/%s%s%s", dir, name, key ? "/" : "", cstr(key));
}

static void write_key(const char *name, const char *key, struct str value)
{
    char path[256];
    FILE *f;

    path_of(name, NULL, path);
    (void)mkdir(path, 0700);
    path_of(name, key, path);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(value.p, 1, value.n, f), value.n);
    assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
    (void)state;
    (void)snprintf(dir, sizeof(dir), "/tmp/test_secrets.XXXXXX");
    secret_files_init(&files, mkdtemp(dir));
    return files.dir ? 0 : -1;
}

static int teardown(void **state)
{
    char command[128];

    (void)state;
    (void)snprintf(command, sizeof(command), "rm -r %s", dir);
    return system(command);
}

static int read_token(struct buf *into, char why[256])
{
    return secrets_token(&files.secrets, "prom", "token", into, why);
}

static void accepts_one_line_of_ascii(void **state)
{
    static const struct {
        struct str value, token; /* empty: refused */
        const char *why;
    } cases[] = {
        {STR("abc"), STR("abc"), NULL},
        {STR("abc\n"), STR("abc"), NULL},
        {STR(" \tabc\r\n\n"), STR("abc"), NULL},
        {STR("eyJhbGciOi.J9-_~+/=="), STR("eyJhbGciOi.J9-_~+/=="), NULL},
        {STR(""), STR(""), "empty"},
        {STR("\n \n"), STR(""), "empty"},
        {STR("two words"), STR(""),
         "not a token: it contains white space or characters not allowed in a header"},
        {STR("secret\r\nX-Evil: 1"), STR(""),
         "not a token: it contains white space or characters not allowed in a header"},
        {STR("secret\nsecond"), STR(""),
         "not a token: it contains white space or characters not allowed in a header"},
        {STR("secret\0rest"), STR(""),
         "not a token: it contains white space or characters not allowed in a header"},
        {STR("secret\x7f"), STR(""),
         "not a token: it contains white space or characters not allowed in a header"},
        {STR("secr\xc3\xa9t"), STR(""),
         "not a token: it contains white space or characters not allowed in a header"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(token, 1000);
        char why[256] = "", want[256];
        write_key("prom", "token", cases[i].value);
        assert_int_equal(read_token(&token, why), cases[i].why ? -EINVAL : 0);
        assert_true(str_eq(buf_str(&token), cases[i].token));
        if (!cases[i].why)
            continue;
        (void)snprintf(want, sizeof(want), "secret \"prom\", key \"token\": %s", cases[i].why);
        assert_string_equal(why, want);
        assert_null(strstr(why, "secret\n"));
    }
}

static void names_the_secret_and_the_problem(void **state)
{
    BUF_AUTO(token, 1000);
    char why[256], path[256];
    struct secret_files none;

    (void)state;
    assert_int_equal(secrets_token(&files.secrets, "other", "token", &token, why), -ENOENT);
    assert_string_equal(why, "secret \"other\", key \"token\": not found");
    write_key("prom", "x", STR("x"));
    assert_int_equal(secrets_token(&files.secrets, "prom", "y", &token, why), -ENOENT);
    assert_string_equal(why, "secret \"prom\", key \"y\": not found");
    path_of("prom", "folder", path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(secrets_token(&files.secrets, "prom", "folder", &token, why), -EISDIR);
    assert_string_equal(why, "secret \"prom\", key \"folder\": Is a directory");
    secret_files_init(&none, NULL);
    assert_int_equal(secrets_token(&none.secrets, "prom", "x", &token, why), -ENOENT);
    assert_int_equal(token.n, 0);
}

static void rejects_large_values(void **state)
{
    static char large[(64 << 10) + 1];
    BUF_AUTO(token, 100);
    char why[256];

    (void)state;
    memset(large, 't', sizeof(large));
    write_key("prom", "token", (struct str){large, sizeof(large)});
    assert_int_equal(read_token(&token, why), -EFBIG);
    assert_string_equal(why, "secret \"prom\", key \"token\": File too large");
    write_key("prom", "token", (struct str){large, 101}); /* past the caller's own ceiling */
    assert_int_equal(read_token(&token, why), -EFBIG);
    assert_int_equal(token.n, 0);
    assert_string_equal(why, "secret \"prom\", key \"token\": File too large");
}

/* As the kubelet does it: a link to a folder is swapped, so a file that was opened once would stay old. */
static void reads_a_changed_file(void **state)
{
    BUF_AUTO(token, 1000);
    char why[256], old[256], new[256], link[256];

    (void)state;
    write_key("v1", "token", STR("one"));
    write_key("v2", "token", STR("two"));
    path_of("v1", NULL, old);
    path_of("v2", NULL, new);
    path_of("linked", NULL, link);
    assert_int_equal(symlink(old, link), 0);
    assert_int_equal(secrets_token(&files.secrets, "linked", "token", &token, why), 0);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink(new, link), 0);
    assert_int_equal(secrets_token(&files.secrets, "linked", "token", &token, why), 0);
    assert_true(str_eq(buf_str(&token), STR("onetwo"))); /* appended */
}

static void fits_long_names_into_the_message(void **state)
{
    BUF_AUTO(token, 1000);
    char name[300], why[256];

    (void)state;
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_true(secrets_token(&files.secrets, name, name, &token, why) < 0);
    assert_true(strlen(why) < sizeof(why));
}

static void survives_each_failed_allocation(void **state)
{
    (void)state;
    write_key("prom", "token", STR("abc"));
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        BUF_AUTO(token, 1000);
        char why[256] = "";
        int r = read_token(&token, why);
        assert_int_equal(r, oom_happened() ? -ENOMEM : 0);
        assert_int_equal(*why == '\0', r == 0);
        assert_int_equal(token.n, r == 0 ? 3 : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_one_line_of_ascii),
        cmocka_unit_test(names_the_secret_and_the_problem),
        cmocka_unit_test(rejects_large_values),
        cmocka_unit_test(reads_a_changed_file),
        cmocka_unit_test(fits_long_names_into_the_message),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
