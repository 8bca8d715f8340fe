#include "exporter/models/predictor_label.h"

#include "exporter/base/base64.h"
#include "exporter/base/def.h"
#include "exporter/base/json.h"
#include "exporter/base/utf8.h"
#include "exporter/num/num.h"

enum { JSON_MAX = PREDICTOR_LABEL_MAX / 4 * 3 };

/* 20.0 rather than 20, as Python writes it. */
static size_t put_decimal(char *out, const char *name, double v)
{
    char text[NUM_MAX];
    size_t n = num_put_double(text, v), at = strlen(name);
    bool whole = !memchr(text, '.', n) && !memchr(text, 'e', n);

    memcpy(out, name, at);
    memcpy(out + at, text, n);
    memcpy(out + at + n, ".0", 2);
    return at + n + (whole ? 2 : 0);
}

/* The longest part of a JSON string, raw between its quotes, that has at most `max` bytes and cuts no
 * escape and no character. */
static struct str raw_cut(struct str raw, size_t max)
{
    size_t n = 0;

    while (n < raw.n) {
        struct str rest = {raw.p + n, raw.n - n};
        size_t next = rest.p[0] != '\\'                ? size_max(1, utf8_char(rest))
                      : rest.n > 1 && rest.p[1] == 'u' ? 6
                                                       : 2;

        if (n + next > size_min(max, raw.n))
            break;
        n += next;
    }
    return (struct str){raw.p, n};
}

/* The values of node, namespace and pod, in one pass. */
static void read_names(struct str metric, struct str names[3])
{
    static const char *const labels[] = {"node", "namespace", "pod"};
    struct str key;
    struct jr j;

    jr_init(&j, metric, JR_STRICT);
    (void)jr_object(&j);
    while (jr_member(&j, &key)) {
        size_t i = 0;

        while (i < ARRAY_SIZE(labels) && !jr_key_is(key, labels[i]))
            i++;
        if (i == ARRAY_SIZE(labels) || jr_peek(&j) != JR_STRING)
            (void)jr_skip(&j, NULL);
        else
            (void)jr_string(&j, &names[i]);
    }
}

size_t predictor_label(char out[PREDICTOR_LABEL_MAX], struct str metric, double alpha, double threshold)
{
    static const char head[] = "{\"predictor_label\":\"";
    struct str names[3] = {STR("unknown"), STR("unknown"), STR("unknown")};
    char json[JSON_MAX], tail[128];
    size_t n = sizeof(head) - 1, n_tail, end;

    read_names(metric, names);
    n_tail = put_decimal(tail, "\",\"alpha\":", alpha);
    n_tail += put_decimal(tail + n_tail, ",\"threshold\":", threshold);
    tail[n_tail++] = '}';
    end = sizeof(json) - n_tail;
    memcpy(json, head, n);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        struct str part = raw_cut(names[i], end - n);

        memcpy(json + n, part.p, part.n);
        n += part.n;
        if (i + 1 < ARRAY_SIZE(names) && n < end)
            json[n++] = '_';
    }
    memcpy(json + n, tail, n_tail);
    return base64_encode((struct str){json, n + n_tail}, out);
}
