/* The words of an AddOnPlacementScore's conditions: each part, there and absent. */
#include "controller/placement/items.h"
#include "controller/placement/sentences.h"
#include "exporter/base/buf.h"
#include "exporter/score/round_error.h"
#include "exporter/score/summary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct summary plain = {.n_sources = 1, .n_items = 1, .items = {{"${node}", AGGREGATE_LAST}}},
                            sourceless = {.n_items = 1, .items = {{"${node}", AGGREGATE_LAST}}},
                            unknown = {.n_sources = 1, .n_items = 1, .items = {{"${nod}", AGGREGATE_MAX}}},
                            two = {.n_sources = 1,
                                   .n_items = 2,
                                   .items = {{"${node}", AGGREGATE_LAST}, {"${pod}", AGGREGATE_LAST}}},
                            suspended = {.n_sources = 1,
                                         .n_items = 1,
                                         .items = {{"${node}", AGGREGATE_LAST}},
                                         .suspended_since = "2026-11-29T22:00:00Z"};

static const struct items none = {.n = 0}, one = {.n = 1, .formats = {{.n = 1, .results = 1}}},
                          five = {.n = 5, .formats = {{.n = 5, .results = 12}}},
                          skipping = {.n = 2,
                                      .left_out = 2,
                                      .unnamed = 3,
                                      .formats = {{.n = 2, .results = 2}}},
                          overlapping = {.n = 4,
                                         .formats = {{.n = 2, .results = 3}, {.n = 2, .results = 2}},
                                         .overlap = {.results = 1, .earlier = 0, .later = 1, .name = "a"}};

static const struct {
    struct scored_facts facts;
    enum scored_reason reason;
    const char *word, *text;
} scored[] = {
    {{.summary = &plain, .made = &one}, SCORED_OK, "Scored", "1 item"},
    {{.summary = &plain, .made = &five}, SCORED_OK, "Scored", "5 items from 12 results"},
    {{.summary = &unknown, .made = &five}, SCORED_OK, "Scored", "5 items; unknown placeholder \"${nod}\""},
    {{.summary = &plain, .made = &skipping, .invalid = 1},
     SCORED_OK,
     "Scored",
     "2 items; skipped 1 not a number, 2 NaN or infinite, 3 with an empty name"},
    {{.summary = &two, .made = &overlapping},
     SCORED_OK,
     "Scored",
     "4 items; \"${node}\" makes 2 from 3 results; left out 1 result of \"${pod}\": \"${node}\" has an item "
     "\"a\" "
     "already"},
    {{.summary = &plain, .made = &none, .results = 7, .invalid = 7, .instead = INSTEAD_LAST_SCORES},
     SCORED_NO_ITEMS,
     "NoItems",
     "no item from 7 results of the scoring API; skipped 7 not a number; the last scores stay until "
     "validUntil"},
    {{.summary = &plain, .made = &none, .results = 7, .expired = true, .instead = INSTEAD_FALLBACK},
     SCORED_EXPIRED,
     "Expired",
     "the scores of the last round have expired, and no round has ended since; fallbackScore is used"},
    {{.summary = &plain, .made = &none},
     SCORED_SOURCE_EMPTY,
     "SourceEmpty",
     "the source returned no series; there are no scores"},
    {{.summary = &plain, .made = &none, .source_series = 3, .instead = INSTEAD_FALLBACK},
     SCORED_NO_RESULTS,
     "NoResults",
     "the scoring API returned no results; fallbackScore is used"},
    {{.summary = &sourceless, .made = &none},
     SCORED_NO_RESULTS,
     "NoResults",
     "the scoring API returned no results; there are no scores"},
    {{.summary = &plain,
      .made = &none,
      .error = ROUND_JSON,
      .stage = STAGE_SCORING,
      .reason = "not JSON",
      .instead = INSTEAD_LAST_SCORES},
     SCORED_SCORING_FAILED,
     "ScoringFailed",
     "not JSON; the last scores stay until validUntil"},
    {{.summary = &plain, .made = &none, .error = ROUND_JSON, .stage = STAGE_SOURCE, .reason = "not JSON"},
     SCORED_SOURCE_FAILED,
     "SourceFailed",
     "not JSON; there are no scores"},
    {{.summary = &suspended, .made = &five, .error = ROUND_JSON, .reason = "not JSON"},
     SCORED_SUSPENDED,
     "Suspended",
     "not called since 2026-11-29T22:00:00Z, as the hub finds the scoring API unhealthy; there are no "
     "scores"},
};

static void says_why_there_are_scores_or_none(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(scored) / sizeof(scored[0]); i++) {
        BUF_AUTO(b, 4096);
        enum scored_reason reason = scored_reason(&scored[i].facts);

        sentence_scored(&b, &scored[i].facts);
        buf_putc(&b, '\0');
        assert_int_equal(buf_failed(&b), 0);
        assert_int_equal(reason, scored[i].reason);
        assert_string_equal(scored_reason_word(reason), scored[i].word);
        assert_string_equal(b.p, scored[i].text);
    }
}

/* Each part is there whole, or not at all: the seventh is too much, a short one fits again. */
static void leaves_out_a_part_that_does_not_fit(void **state)
{
    static const char end[] = "; \"b\" makes 1 from 3 results",
                      long_part[] = "aaa\"\u2026 makes 1 from 2 results";
    char format[101];
    struct summary sum = {.n_items = SUMMARY_MAX_ITEMS};
    struct items made = {.n = SUMMARY_MAX_ITEMS};
    const struct scored_facts facts = {.summary = &sum, .made = &made};
    size_t parts = 0;
    BUF_AUTO(b, 4096);

    (void)state;
    memset(format, 'a', sizeof(format) - 1);
    format[sizeof(format) - 1] = '\0';
    for (size_t i = 0; i < SUMMARY_MAX_ITEMS; i++) {
        sum.items[i] = (struct summary_item){format, AGGREGATE_LAST};
        made.formats[i] = (struct format_items){.n = 1, .results = 2};
    }
    sum.items[SUMMARY_MAX_ITEMS - 1].format = (char[]){"b"};
    made.formats[SUMMARY_MAX_ITEMS - 1].results = 3;
    sentence_scored(&b, &facts);
    buf_putc(&b, '\0');
    assert_int_equal(buf_failed(&b), 0);
    for (const char *at = b.p; (at = strstr(at, long_part)); at++)
        parts++;
    assert_int_equal(parts, 6);
    assert_string_equal(b.p + strlen(b.p) - strlen(end), end);
}

static const struct {
    struct truncated_facts facts;
    const char *text;
} truncated[] = {
    {{0, 10, 0}, "all items are written"},
    {{3, 10, 0}, "3 of 10 items omitted, the last by name: an object holds at most 1.5 MiB"},
    {{0, 10, 1}, "1 result merged with others whose labels differ only beyond limits.labelValueBytes"},
    {{3, 10, 2},
     "3 of 10 items omitted, the last by name: an object holds at most 1.5 MiB; 2 results merged with others "
     "whose labels differ only beyond limits.labelValueBytes"},
};

static void says_what_is_missing(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(truncated) / sizeof(truncated[0]); i++) {
        BUF_AUTO(b, 4096);

        sentence_truncated(&b, &truncated[i].facts);
        buf_putc(&b, '\0');
        assert_string_equal(b.p, truncated[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_why_there_are_scores_or_none),
        cmocka_unit_test(leaves_out_a_part_that_does_not_fit),
        cmocka_unit_test(says_what_is_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
