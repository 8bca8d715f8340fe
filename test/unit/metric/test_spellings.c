#include "exporter/metric/spellings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void note_all(struct spellings *s, const char *const *texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        spellings_note(s, str_of(texts[i]), i);
}

static void assert_taken(struct spellings *s, const char *text, size_t n, size_t place)
{
    size_t got = 99;

    assert_int_equal(spellings_match(s, str_of(text)), n);
    spellings_take(s, &got);
    assert_int_equal(got, place);
}

static void matches_spellings_in_order(void **state)
{
    struct spellings s = {0};

    (void)state;
    assert_int_equal(spellings_match(&s, STR("{a}")), 0); /* nothing is known yet */
    note_all(&s, (const char *const[]){"{a}", "{bb}", "{a}"}, 3);
    assert_int_equal(spellings_match(&s, STR("{a}")), 0); /* nor before the answer is at its end */
    spellings_keep(&s, NULL);
    assert_taken(&s, "{a},{bb}", 3, 0);
    assert_int_equal(spellings_match(&s, STR("{a}")), 0);
    assert_int_equal(spellings_match(&s, STR("{bb")), 0); /* the text ends */
    assert_int_equal(spellings_match(&s, STR("{bc}")), 0);
    assert_taken(&s, "{bb}", 4, 1);
    assert_taken(&s, "{a}", 3, 2);
    assert_int_equal(spellings_match(&s, STR("{a}")), 0); /* there were three */
    spellings_done(&s);
}

static void ignores_an_empty_spelling(void **state)
{
    struct spellings s = {0};

    (void)state;
    note_all(&s, (const char *const[]){"", "{b}"}, 2);
    spellings_keep(&s, NULL);
    assert_taken(&s, "{b}", 3, 1);
    spellings_done(&s);
}

static void follows_an_unexpected_result(void **state)
{
    struct spellings s = {0};

    (void)state;
    note_all(&s, (const char *const[]){"{a}", "{b}", "{c}", "{d}"}, 4);
    spellings_keep(&s, NULL);
    assert_taken(&s, "{a}", 3, 0);
    /* {b} is gone: {c} had to be read, and {d} follows it. */
    assert_int_equal(spellings_match(&s, STR("{c}")), 0);
    spellings_follow(&s, 2, 5);
    spellings_note(&s, STR("{c}"), 2);
    /* What was never spelled changes nothing. */
    spellings_follow(&s, 4, 5);
    assert_taken(&s, "{d}", 3, 3);
    spellings_keep(&s, NULL);
    assert_taken(&s, "{a}", 3, 0);
    assert_taken(&s, "{c}", 3, 2);
    assert_taken(&s, "{d}", 3, 3);
    spellings_done(&s);
}

static void maps_places_that_moved(void **state)
{
    struct spellings s = {0};

    (void)state;
    note_all(&s, (const char *const[]){"{a}", "{b}", "{c}"}, 3);
    spellings_keep(&s, (const uint32_t[]){2, 0, 1});
    assert_taken(&s, "{a}", 3, 2);
    assert_taken(&s, "{b}", 3, 0);
    assert_taken(&s, "{c}", 3, 1);
    spellings_done(&s);
}

static void forgets_a_dropped_answer(void **state)
{
    struct spellings s = {0};

    (void)state;
    note_all(&s, (const char *const[]){"{a}", "{b}"}, 2);
    spellings_keep(&s, NULL);
    assert_taken(&s, "{a}", 3, 0);
    spellings_note(&s, STR("{x}"), 7);
    spellings_drop(&s);
    assert_taken(&s, "{a}", 3, 0);
    assert_taken(&s, "{b}", 3, 1);
    spellings_done(&s);
    assert_int_equal(spellings_match(&s, STR("{a}")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_spellings_in_order),   cmocka_unit_test(ignores_an_empty_spelling),
        cmocka_unit_test(follows_an_unexpected_result), cmocka_unit_test(maps_places_that_moved),
        cmocka_unit_test(forgets_a_dropped_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
