/* An agent's report: whatever it holds, what is kept is small, sorted, and fit to be shown. */
#include "controller/hub/rules/report.h"
#include "exporter/base/hash.h"
#include "exporter/base/utf8.h"
#include "exporter/score/scorer_state.h"

#include <assert.h>
#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(const char *line, size_t size)
{
    struct str s = str_of(line);

    assert(s.n > 0 && s.n < size && utf8_valid_prefix(s) == s.n);
    for (size_t i = 0; i < s.n; i++)
        assert((unsigned char)s.p[i] >= ' ' && s.p[i] != 0x7f);
}

static void check_cell(const struct report *r, const struct report_cell *c)
{
    assert(c->state < SCORER_STATES && c->error <= r->n_errors);
    assert(report_find(r, c->score)->score == c->score);
    assert(!c->error || ((report_cell_fails(c) || c->no_items) && *report_error(r, c)));
    assert(*scorer_state_word(c->state));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    CLEANUP(report_done) struct report r = {.n = 7};
    size_t has_words = 0; /* cells that may have an error text: failing ones, and those without an item */
    int e = report_parse(&r, text);

    if (e < 0) {
        assert(e == -EINVAL && r.n == 7);
        r = (struct report){0};
        return 0;
    }
    assert(r.exists == (size > 0) && r.n <= REPORT_MAX_CELLS && !r.cells == !r.n);
    assert(!r.exists || r.hash == hash_bytes(text));
    for (uint32_t i = 0; i < r.n; i++) {
        assert(i == 0 || r.cells[i - 1].score <= r.cells[i].score);
        check_cell(&r, &r.cells[i]);
        has_words += report_cell_fails(&r.cells[i]) || r.cells[i].no_items;
    }
    assert(r.n_errors <= REPORT_MAX_ERRORS && r.n_errors <= has_words);
    for (uint32_t i = 0; i < r.n_errors; i++) {
        check_line(r.errors[i], REPORT_ERROR_BYTES);
        for (uint32_t k = 0; k < i; k++)
            assert(strcmp(r.errors[i], r.errors[k]) != 0);
    }
    assert(!r.config_rejected || (r.problem && !r.config_ok));
    if (r.problem)
        check_line(r.problem, 512);
    return 0;
}
