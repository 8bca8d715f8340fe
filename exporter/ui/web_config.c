#include "exporter/ui/web_config.h"

#include "exporter/ui/members.h"

void member_problems(struct out *o, const char *problems)
{
    struct str rest = str_of(problems);

    member_list(o, "problems");
    while (rest.n) {
        const char *end = memchr(rest.p, '\n', rest.n);
        struct str line = {rest.p, end ? (size_t)(end - rest.p) : rest.n};
        size_t skip = size_min(line.n + 1, rest.n);

        if (line.n) {
            member_item(o);
            value_text(o, line);
        }
        rest = (struct str){rest.p + skip, rest.n - skip};
    }
    out_puts(o, "]");
}

void member_web_config(struct out *o, const struct access *access)
{
    const struct access_status *s = access_status(access);

    if (!member_object_if(o, "webConfig", s))
        return;
    member_text(o, "file", s->file);
    member_bool(o, "ok", s->ok);
    member_time(o, "lastTriedAt", s->at_ms);
    member_problems(o, s->problems);
    out_puts(o, "}");
}
