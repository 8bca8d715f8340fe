/* Reading the agent's own metrics from their text. */
#include "remotewrite/intake_internal.h"

#include "exporter/base/num.h"

#include <errno.h>

enum { TEXT_LABELS_MAX = 64 << 20 };

static size_t count_lines(struct str text)
{
    size_t n = 1;

    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n';
    return n;
}

/* The next line without its end; moves past it. */
static struct str next_line(struct str *text)
{
    const char *end = memchr(text->p, '\n', text->n);
    struct str line = {text->p, end ? (size_t)(end - text->p) : text->n};

    text->p += line.n + (end != NULL);
    text->n -= line.n + (end != NULL);
    return line;
}

/* `name{...} value`: a value holds no space, and a label's value may. */
static bool split(struct str line, struct str *ret_name, double *ret)
{
    const char *space = line.n && line.p[0] != '#' ? memrchr(line.p, ' ', line.n) : NULL;

    if (!space)
        return false;
    *ret_name = (struct str){line.p, (size_t)(space - line.p)};
    return num_parse_word((struct str){space + 1, line.n - ret_name->n - 1}, ret) != NUM_SYNTAX;
}

int intake_parse_text(const struct rw_endpoint_config *c, struct str text, struct label_bytes **ret,
                      double **ret_values)
{
    CLEANUP(cleanup_label_bytes_free) struct label_bytes *l = calloc(1, sizeof(*l));
    CLEANUP(label_list_done) struct label_list list = {.room = NULL};
    size_t lines = count_lines(text);
    CLEANUP(cleanup_free) double *values = malloc(lines * sizeof(*values));
    BUF_AUTO(bytes, TEXT_LABELS_MAX);

    if (!l || !values || label_list_init(&list) < 0)
        return -ENOMEM;
    l->at = calloc(lines + 1, sizeof(l->at[0]));
    if (!l->at)
        return -ENOMEM;
    while (text.n) {
        struct str name;
        int r = split(next_line(&text), &name, &values[l->n]) ? labels_pack(&list, name, c, &bytes) : 0;

        if (r == -ENOMEM)
            return r;
        if (r == 1)
            l->at[++l->n] = bytes.n;
    }
    l->bytes_n = bytes.n;
    l->bytes = buf_take(&bytes).p;
    *ret = TAKE_PTR(l);
    *ret_values = TAKE_PTR(values);
    return 0;
}
