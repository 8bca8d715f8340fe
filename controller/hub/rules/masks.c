#include "controller/hub/rules/masks.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

enum { NAME_BYTES = 253 }; /* of a longer one nothing is suggested */

static int name_fold(char c)
{
    return c == '-' || c == '.' ? '_' : tolower((unsigned char)c);
}

/* Levenshtein's distance, row by row; `limit` when it is not less. */
static unsigned name_distance(const char *a, size_t n_a, const char *b, size_t n_b, unsigned limit)
{
    unsigned row[NAME_BYTES + 1];

    for (unsigned j = 0; j <= n_b; j++)
        row[j] = j;
    for (unsigned i = 1; i <= n_a; i++) {
        unsigned diagonal = row[0], least = row[0] = i;

        for (unsigned j = 1; j <= n_b; j++) {
            unsigned change = diagonal + (name_fold(a[i - 1]) != name_fold(b[j - 1]));
            unsigned step = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;

            diagonal = row[j];
            row[j] = change < step ? change : step;
            least = row[j] < least ? row[j] : least;
        }
        if (least >= limit)
            return limit;
    }
    return row[n_b] < limit ? row[n_b] : limit;
}

bool mask_name_is_nearer(const char *text, const char *name, unsigned *best)
{
    size_t n_text = strlen(text), n_name = strlen(name);
    size_t differ = n_text > n_name ? n_text - n_name : n_name - n_text;
    /* Of a short name fewer letters can be wrong. */
    unsigned limit = (unsigned)size_min(*best, n_text / 3 + 1), distance;

    if (n_text > NAME_BYTES || n_name > NAME_BYTES || differ >= limit)
        return false;
    distance = name_distance(text, n_text, name, n_name, limit);
    if (distance >= limit)
        return false;
    *best = distance;
    return true;
}

/* Appends the entries of one of the two lists. */
static int masks_read_list(struct masks *m, const json_t *object, const char *key, char why[256])
{
    const json_t *list = kube_get(object, "spec", key, NULL), *entry;
    size_t i;

    if (!list || json_is_null(list))
        return 0;
    if (!json_is_array(list)) {
        (void)snprintf(why, 256, "spec.%s: expected a list of {clusterName, scoreName}", key);
        return -EINVAL;
    }
    json_array_foreach(list, i, entry)
    {
        static const char *const names[] = {"clusterName", "scoreName"};
        const char *texts[ARRAY_SIZE(names)];

        for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
            texts[k] = kube_str(entry, names[k], NULL);
            if (texts[k] && *texts[k])
                continue;
            (void)snprintf(why, 256, "spec.%s[%zu].%s: expected a name or a pattern with * and ?", key, i,
                           names[k]);
            return -EINVAL;
        }
        m->list[m->n++] = (struct mask){.cluster = texts[0], .score = texts[1]};
    }
    return 0;
}

int masks_read(struct masks *ret, json_t *object, char why[256])
{
    size_t max = json_array_size(kube_list(object, "spec", "masks", NULL)) +
                 json_array_size(kube_list(object, "spec", "mask", NULL));
    CLEANUP(masks_done) struct masks m = {.list = xcalloc(max + 1, sizeof(struct mask))};
    int r;

    m.owner = json_incref(object);
    r = masks_read_list(&m, object, "masks", why);
    if (r == 0)
        r = masks_read_list(&m, object, "mask", why);
    if (r < 0)
        return r;
    *ret = m;
    m = (struct masks){0};
    return 0;
}

void masks_done(struct masks *m)
{
    json_decref(m->owner);
    free(m->list);
    *m = (struct masks){0};
}
