/* Owns the spellings of the last answer, and of the one that is being read. Belongs to the builder that
 * has it. */
#include "exporter/metric/spelling.h"

#include "exporter/base/alloc.h"

void spellings_follow(struct spellings *s, size_t place, size_t n_places)
{
    if (s->n_was == 0)
        return;
    if (!s->index) {
        s->index = xcalloc(n_places, sizeof(*s->index));
        for (size_t i = 0; i < s->n_was; i++)
            s->index[s->was[i].place] = (uint32_t)i + 1;
    }
    if (s->index[place])
        s->next = s->index[place];
}

void spellings_drop(struct spellings *s)
{
    free(TAKE_PTR(s->now));
    free(TAKE_PTR(s->index));
    s->n_now = s->cap_now = s->next = 0;
}

void spellings_keep(struct spellings *s, const uint32_t *moved)
{
    for (size_t i = 0; moved && i < s->n_now; i++)
        s->now[i].place = moved[s->now[i].place];
    free(s->was);
    s->was = TAKE_PTR(s->now);
    s->n_was = s->n_now;
    spellings_drop(s);
}

void spellings_done(struct spellings *s)
{
    spellings_drop(s);
    free(s->was);
    *s = (struct spellings){0};
}
