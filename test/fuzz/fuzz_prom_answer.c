/* Prometheus' answer: what is taken from it can be put into a request as it is. */
#include "exporter/base/buf.h"
#include "exporter/base/json.h"
#include "exporter/base/utf8.h"
#include "exporter/score/prom_answer.h"
#include "exporter/score/round_error.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sentence(const char *s)
{
    struct str text = str_of(s);

    assert(utf8_valid_prefix(text) == text.n && !strchr(s, '\n'));
}

/* The series in brackets must be a list of as many objects. */
static void check_series(const struct prom_answer *a, struct str body)
{
    BUF_AUTO(text, 1u << 30);
    struct jr j;
    size_t n = 0;

    assert(a->made.p || a->series.n == 0 ||
           (a->series.p > body.p && a->series.p + a->series.n < body.p + body.n));
    buf_putc(&text, '[');
    buf_put_str(&text, a->series);
    buf_putc(&text, ']');
    assert(buf_failed(&text) == 0);
    jr_init(&j, buf_str(&text), JR_STRICT);
    for ((void)jr_array(&j); jr_item(&j); n++) {
        assert(jr_peek(&j) == JR_OBJECT);
        (void)jr_skip(&j, NULL);
    }
    assert(jr_end(&j) && n == a->n_series);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str body = {(const char *)data, size};
    struct prom_answer a;
    char why[1024] = "";

    if (prom_answer_parse(body, &a, why) == ROUND_OK) {
        check_series(&a, body);
        check_sentence(a.warning);
        assert(!*why && (a.warnings || !*a.warning));
    }
    buf_done(&a.made);
    check_sentence(why);
    (void)strcpy(why, "");
    assert(prom_answer_error(body, why) || !*why);
    check_sentence(why);
    return 0;
}
