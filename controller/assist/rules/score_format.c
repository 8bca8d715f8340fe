#include "controller/assist/rules/score_format.h"

#include <errno.h>

enum { MATCH_STEPS = 10000 };

static int format_add(struct score_format *f, enum score_part_kind kind, struct str text,
                      const char **ret_why)
{
    if (kind == SCORE_LITERAL && text.n == 0)
        return 0;
    for (size_t i = 0; i < f->n && (kind == SCORE_APP || kind == SCORE_DEVICE); i++)
        if (f->parts[i].kind == kind) {
            *ret_why = "has a placeholder twice";
            return -EINVAL;
        }
    if (f->n == SCORE_FORMAT_PARTS) {
        *ret_why = "has more than 16 parts";
        return -EINVAL;
    }
    f->parts[f->n++] = (struct score_part){kind, text};
    return 0;
}

static enum score_part_kind placeholder_kind(struct str name)
{
    if (str_eq(name, STR("app")))
        return SCORE_APP;
    return str_eq(name, STR("device")) ? SCORE_DEVICE : SCORE_ANY;
}

int score_format_parse(struct score_format *ret, struct str text, const char **ret_why)
{
    struct score_format f = {0};
    const char *p = text.p, *end = text.p + text.n, *literal = p;

    while (p < end) {
        const char *close;

        if (end - p < 2 || p[0] != '$' || p[1] != '{') {
            p++;
            continue;
        }
        close = memchr(p, '}', (size_t)(end - p));
        if (!close || close == p + 2) {
            *ret_why = close ? "has a placeholder without a name" : "has a ${ without its }";
            return -EINVAL;
        }
        if (format_add(&f, SCORE_LITERAL, (struct str){literal, (size_t)(p - literal)}, ret_why) < 0 ||
            format_add(&f, placeholder_kind((struct str){p + 2, (size_t)(close - p - 2)}), (struct str){0},
                       ret_why) < 0)
            return -EINVAL;
        p = literal = close + 1;
    }
    if (format_add(&f, SCORE_LITERAL, (struct str){literal, (size_t)(end - literal)}, ret_why) < 0)
        return -EINVAL;
    if (f.n == 0) {
        *ret_why = "is empty";
        return -EINVAL;
    }
    *ret = f;
    return 0;
}

struct matching {
    const struct score_format *format;
    const struct score_matcher *m;
    unsigned steps;
    size_t app, device; /* so far */
};

static void match_from(struct matching *at, size_t part, struct str rest);

/* The placeholder takes the first n bytes. */
static void match_capture(struct matching *at, size_t part, struct str rest, size_t n)
{
    struct str taken = {rest.p, n}, left = {rest.p + n, rest.n - n};
    struct matching next = *at;
    enum score_part_kind kind = at->format->parts[part].kind;

    if (kind == SCORE_APP)
        next.app = at->m->app(at->m->arg, taken);
    else if (kind == SCORE_DEVICE)
        next.device = at->m->device(at->m->arg, taken);
    if ((kind == SCORE_APP && next.app == SIZE_MAX) || (kind == SCORE_DEVICE && next.device == SIZE_MAX))
        return;
    match_from(&next, part + 1, left);
    at->steps = next.steps;
}

/* Recurses once for each part. */
static void match_from(struct matching *at, size_t part, struct str rest)
{
    const struct score_part *p = &at->format->parts[part], *next = p + 1;
    bool is_last = part + 1 >= at->format->n;

    if (part == at->format->n) {
        if (rest.n == 0)
            at->m->found(at->m->arg, at->app, at->device);
        return;
    }
    if (p->kind == SCORE_LITERAL) {
        if (str_starts(rest, p->text))
            match_from(at, part + 1, (struct str){rest.p + p->text.n, rest.n - p->text.n});
        return;
    }
    for (size_t n = is_last ? rest.n : 1; n > 0 && n <= rest.n && at->steps < MATCH_STEPS; n++) {
        at->steps++;
        if (is_last || next->kind != SCORE_LITERAL ||
            str_starts((struct str){rest.p + n, rest.n - n}, next->text))
            match_capture(at, part, rest, n);
    }
}

void score_format_match(const struct score_format *f, struct str name, const struct score_matcher *m)
{
    match_from(&(struct matching){.format = f, .m = m, .app = SIZE_MAX, .device = SIZE_MAX}, 0, name);
}
