/* Numbers as text read as strtod() reads them; any double reads back from its text. */
#include "exporter/num/num.h"

#include <stdlib.h>

static void require(bool good)
{
    if (!good)
        abort();
}

static bool same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static void check_text(struct str text)
{
    char *copy = malloc(text.n + 1), *end;
    double v, want;

    require(copy != NULL);
    if (text.n)
        memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    if (num_parse(text, &v) != NUM_SYNTAX) {
        want = strtod(copy, &end);
        require(end == copy + text.n && same(v, want));
        require(num_parse_word(text, &want) != NUM_SYNTAX && same(v, want));
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[NUM_MAX];
    double v, back;
    size_t n;

    check_text((struct str){(const char *)data, size});
    if (size < sizeof v)
        return 0;
    memcpy(&v, data, sizeof v);
    n = num_put_double(text, v);
    require(n <= 24 && num_parse_word((struct str){text, n}, &back) == NUM_OK && (same(v, back) || v != v));
    return 0;
}
