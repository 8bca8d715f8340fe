#include "exporter/base/def.h"
#include "exporter/web/bcrypt.h"
#include "test/oom.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SALT   "abcdefghijklmnopqrstuu"
#define DIGEST "5s2v8.iXieOjg/.AySBTTZIIVFJeBui"

static void reads_the_cost_of_a_hash(void **state)
{
    static const struct {
        const char *hash;
        unsigned cost;
    } cases[] = {
        {"$2a$04$" SALT DIGEST, 4},
        {"$2b$10$" SALT DIGEST, 10},
        {"$2y$31$" SALT DIGEST, 31},
        {"$2y$03$" SALT DIGEST, 0},
        {"$2y$32$" SALT DIGEST, 0},
        {"$2x$10$" SALT DIGEST, 0},
        {"$2$10$" SALT DIGEST, 0},
        {"$1$10$" SALT DIGEST, 0},
        {"$2b$1$" SALT DIGEST "x", 0},
        {"$2b$10$" SALT DIGEST "x", 0},
        {"$2b$10$" SALT, 0},
        {"doe", 0},
        {"", 0},
        {"$2b$10-" SALT DIGEST, 0},
        {"$2b$1x$" SALT DIGEST, 0},
        {"$2b$10$abcdefghijklmnopqrstu$" DIGEST, 0},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(bcrypt_cost(str_of(cases[i].hash)), cases[i].cost);
}

/* Known answers; programs differ in the prefix that they write. */
static void compares_passwords(void **state)
{
    static const struct {
        const char *password, *hash;
        bool matches;
    } cases[] = {
        {"U*U", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", true},
        {"U*U", "$2b$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", true},
        {"U*U", "$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", true},
        {"U*U*", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK", true},
        {"U*U**", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK", false},
        {"u*u*", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.VGOzA784oUp/Z0DY336zx7pLYAy0lwK", false},
        {"", "$2a$05$CCCCCCCCCCCCCCCCCCCCC.7uG0VCzI2bS7j6ymqJi9CdcdxiRTWNy", true},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_true((bcrypt_cost(str_of(cases[i].hash)) &&
                     bcrypt_matches(str_of(cases[i].password), str_of(cases[i].hash)) == 1) ==
                    cases[i].matches);
}

static void refuses_a_password_that_is_too_long(void **state)
{
    char password[PASSWORD_MAX_BYTES + 2];

    (void)state;
    memset(password, 'x', sizeof(password));
    assert_int_equal(0, bcrypt_matches((struct str){password, sizeof(password) - 1},
                                       STR("$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW")));
}

static void survives_each_failed_allocation(void **state)
{
    (void)state;
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        int r =
            bcrypt_matches(STR("U*U"), STR("$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"));
        assert_int_equal(r, oom_happened() ? -ENOMEM : 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_the_cost_of_a_hash),
        cmocka_unit_test(compares_passwords),
        cmocka_unit_test(refuses_a_password_that_is_too_long),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
