/* Reports unknown keys. Most are spelling mistakes, so the nearest known name is suggested. */
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"

#include <ctype.h>

enum { NAME_MAX_BYTES = 40 };

static size_t min3(size_t a, size_t b, size_t c)
{
    return size_min(size_min(a, b), c);
}

/* The restricted Damerau-Levenshtein distance (insertions, deletions, replacements, swaps of neighbours),
 * ignoring case. Both names have at most NAME_MAX_BYTES. */
static size_t edit_distance(struct str a, struct str b)
{
    size_t rows[3][NAME_MAX_BYTES + 1];

    for (size_t j = 0; j <= b.n; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        int ca = tolower((unsigned char)a.p[i - 1]),
            before_a = i > 1 ? tolower((unsigned char)a.p[i - 2]) : -1;

        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            int cb = tolower((unsigned char)b.p[j - 1]);

            row[j] = min3(above[j] + 1, row[j - 1] + 1, above[j - 1] + (ca == cb ? 0 : 1));
            if (j > 1 && before_a == cb && tolower((unsigned char)b.p[j - 2]) == ca)
                row[j] = size_min(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[a.n % 3][b.n];
}

const char *name_nearest(struct str key, const char *const *known)
{
    const char *best = NULL;
    size_t best_distance = size_min(1 + key.n / 4, 3) + 1;

    if (key.n < 2 || key.n > NAME_MAX_BYTES)
        return NULL;
    for (; *known; known++) {
        struct str name = str_of(*known);
        size_t d = name.n <= NAME_MAX_BYTES ? edit_distance(key, name) : best_distance;

        if (d < best_distance) {
            best = *known;
            best_distance = d;
        }
    }
    return best;
}

static bool is_known(struct str key, const char *const *known)
{
    while (*known && !str_eq(key, str_of(*known)))
        known++;
    return *known != NULL;
}

static void report_unknown_key(const struct node *n, const char *const *known, enum problem_kind kind,
                               struct problems *p)
{
    const char *name = name_nearest(n->key, known);
    BUF_AUTO(list, 4096);
    int r = 0;

    if (name) {
        node_key_problem(n, p, kind, "unknown key, did you mean %s?", name);
        return;
    }
    for (size_t i = 0; known[i] && r == 0; i++)
        r = buf_printf(&list, "%s%s", i ? ", " : "", known[i]);
    if (r < 0)
        p->out_of_memory = true;
    node_key_problem(n, p, kind, "unknown key, expected one of %.*s", STR_ARG(buf_str(&list)));
}

void node_only_keys(const struct node *map, const char *const *known, enum problem_kind kind,
                    struct problems *p)
{
    if (!map || map->kind != NODE_MAP)
        return;
    for (size_t i = 0; i < map->n; i++)
        if (!is_known(map->items[i]->key, known))
            report_unknown_key(map->items[i], known, kind, p);
}
