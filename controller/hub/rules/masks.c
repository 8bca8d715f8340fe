#include "controller/hub/rules/masks.h"

#include <errno.h>
#include <stdio.h>

/* After a mismatch only the last star is extended: each earlier one has matched the least it can, and more
 * would not help. */
bool glob_match(const char *pattern, const char *text)
{
    const char *star = NULL, *retry = NULL;

    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            retry = text;
        } else if (*pattern == '?' || *pattern == *text) {
            /* One character of UTF-8. */
            do {
                text++;
            } while (*pattern == '?' && ((unsigned char)*text & 0xc0) == 0x80);
            pattern++;
        } else if (star) {
            pattern = star + 1;
            text = ++retry;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == '\0';
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
    CLEANUP(masks_done) struct masks m = {.list = calloc(max + 1, sizeof(struct mask))};
    int r;

    if (!m.list)
        return -ENOMEM;
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
