#include "exporter/base/buf.h"
#include "exporter/score/credentials.h"
#include "exporter/score/secrets.h"

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
    secrets_forget(&files.secrets);
    (void)snprintf(command, sizeof(command), "rm -r %s", dir);
    return system(command);
}

/* Appends the token of a Secret. */
static int token_in(struct secrets *s, const char *name, const char *key, struct buf *into, char why[256])
{
    CLEANUP(cleanup_credentials_unref) struct credentials *c = NULL;
    int r = secrets_get(s, name, key, &c, why);

    assert_int_equal(c != NULL, r == 0);
    return r == 0 ? buf_put_str(into, buf_str(&c->values[CREDENTIAL_TOKEN])) : r;
}

static int read_token(struct buf *into, char why[256])
{
    return token_in(&files.secrets, "prom", "token", into, why);
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
    assert_int_equal(token_in(&files.secrets, "other", "token", &token, why), -ENOENT);
    assert_string_equal(why, "secret \"other\", key \"token\": not found");
    write_key("prom", "x", STR("x"));
    assert_int_equal(token_in(&files.secrets, "prom", "y", &token, why), -ENOENT);
    assert_string_equal(why, "secret \"prom\", key \"y\": not found");
    path_of("prom", "folder", path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(token_in(&files.secrets, "prom", "folder", &token, why), -EISDIR);
    assert_string_equal(why, "secret \"prom\", key \"folder\": Is a directory");
    secret_files_init(&none, NULL);
    assert_int_equal(token_in(&none.secrets, "prom", "x", &token, why), -ENOENT);
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
    assert_string_equal(why, "secret \"prom\", key \"token\": longer than 65536 bytes");
    assert_int_equal(token.n, 0);
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
    assert_int_equal(token_in(&files.secrets, "linked", "token", &token, why), 0);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink(new, link), 0);
    assert_int_equal(token_in(&files.secrets, "linked", "token", &token, why), 0);
    assert_true(str_eq(buf_str(&token), STR("onetwo"))); /* appended */
}

/* Sets the time of the last change of all that a Secret has, so that it counts as settled or not. */
static void touch_all(const char *name, const char *when)
{
    char path[256], command[512];

    path_of(name, NULL, path);
    (void)snprintf(command, sizeof(command), "find %s -exec touch -h -d '%s' {} +", path, when);
    assert_int_equal(system(command), 0);
}

static struct credentials *get(const char *name, const char *key)
{
    struct credentials *c = NULL;
    char why[256] = "";

    if (secrets_get(&files.secrets, name, key, &c, why) < 0)
        fail_msg("%s", why);
    return c;
}

static void keeps_what_has_not_changed(void **state)
{
    struct credentials *first, *again, *other;

    (void)state;
    assert_null(get(NULL, NULL));
    write_key("kept", "token", STR("one"));
    write_key("kept", "header", STR("X-Key: k"));
    touch_all("kept", "1 hour ago");
    first = get("kept", "token");
    again = get("kept", "token");
    other = get("kept", NULL);
    assert_ptr_equal(first, again);
    assert_ptr_not_equal(first, other); /* it names no token */
    (void)credentials_unref(again);
    (void)credentials_unref(other);
    write_key("kept", "token", STR("two")); /* of the same size */
    again = get("kept", "token");
    assert_string_equal(again->values[CREDENTIAL_TOKEN].p, "two");
    assert_string_equal(first->values[CREDENTIAL_TOKEN].p, "one"); /* of a call that is in progress */
    (void)credentials_unref(first);
    /* So young that another change might leave the time as it is. */
    first = get("kept", "token");
    assert_ptr_not_equal(first, again);
    (void)credentials_unref(first);
    (void)credentials_unref(again);
    secrets_forget(&files.secrets);
}

static void forgets_a_secret_that_is_gone(void **state)
{
    struct credentials *c;
    char why[256], path[256];

    (void)state;
    write_key("gone", "token", STR("one"));
    touch_all("gone", "1 hour ago");
    c = credentials_unref(get("gone", "token"));
    path_of("gone", "token", path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(secrets_get(&files.secrets, "gone", "token", &c, why), -ENOENT);
    assert_string_equal(why, "secret \"gone\", key \"token\": not found");
    path_of("gone", NULL, path);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(secrets_get(&files.secrets, "gone", NULL, &c, why), -ENOENT);
    assert_string_equal(why, "secret \"gone\": not found");
    assert_true(LIST_EMPTY(&files.secrets.cache));
}

/* As a service account's volume, whose ca.crt is that of its API server. */
static void trusts_a_ca_unless_there_is_a_namespace(void **state)
{
    struct secret_state now;
    const char *why = NULL;

    (void)state;
    write_key("mount", "token", STR("t"));
    assert_int_equal(files.secrets.look(&files.secrets, "mount", "token", &now, &why), 0);
    assert_true(now.trusts_ca);
    write_key("mount", "namespace", STR("default"));
    write_key("mount", "ca.crt", STR("not even one"));
    assert_int_equal(files.secrets.look(&files.secrets, "mount", "token", &now, &why), 0);
    assert_false(now.trusts_ca);
    (void)credentials_unref(get("mount", "token"));
}

static void fits_long_names_into_the_message(void **state)
{
    BUF_AUTO(token, 1000);
    char name[300], why[256];

    (void)state;
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_true(token_in(&files.secrets, name, name, &token, why) < 0);
    assert_true(strlen(why) < sizeof(why));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accepts_one_line_of_ascii),
        cmocka_unit_test(names_the_secret_and_the_problem),
        cmocka_unit_test(rejects_large_values),
        cmocka_unit_test(reads_a_changed_file),
        cmocka_unit_test(keeps_what_has_not_changed),
        cmocka_unit_test(forgets_a_secret_that_is_gone),
        cmocka_unit_test(trusts_a_ca_unless_there_is_a_namespace),
        cmocka_unit_test(fits_long_names_into_the_message),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
