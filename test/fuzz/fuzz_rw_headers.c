/* What a receiver answers: its headers, and an error's body as it is shown to people. */
#include "exporter/base/utf8.h"
#include "remotewrite/transport.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str rest = {(const char *)data, size}, text;
    struct transport_answer a = {.status = size ? 190 + data[0] * 2 : 0};

    transport_note_body(&a, rest);
    text = str_of(a.text);
    assert(text.n < sizeof(a.text) && utf8_valid_prefix(text) == text.n);
    assert(a.status < 200 || a.status > 299 || text.n == 0);
    for (size_t i = 0; i < text.n; i++)
        assert((unsigned char)text.p[i] >= 0x20 && text.p[i] != 0x7f);
    while (rest.n) {
        const char *end = memchr(rest.p, '\n', rest.n);
        struct str line = {rest.p, end ? (size_t)(end - rest.p) : rest.n};
        const char *colon = line.n ? memchr(line.p, ':', line.n) : NULL;

        transport_note_header(&a, (struct str){line.p, colon ? (size_t)(colon - line.p) : line.n},
                              colon ? (struct str){colon + 1, line.n - (size_t)(colon - line.p) - 1}
                                    : STR(""));
        rest = (struct str){rest.p + line.n + (end != NULL), rest.n - line.n - (end != NULL)};
    }
    return 0;
}
