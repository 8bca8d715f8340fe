#include "remotewrite/families.h"

void families_done(struct families *f)
{
    struct family *one;
    size_t at = 0;

    while ((one = map_next(&f->by_name, &at)))
        free(one);
    map_done(&f->by_name);
}

const struct family *families_find(const struct families *f, struct str name)
{
    char key[FAMILY_NAME_MAX + 1];

    if (name.n == 0 || name.n > FAMILY_NAME_MAX)
        return NULL;
    memcpy(key, name.p, name.n);
    key[name.n] = '\0';
    return map_get(&f->by_name, key);
}

static size_t stem_bytes(struct str name, const char *suffix)
{
    size_t n = strlen(suffix);
    bool ends = name.n > n && memcmp(name.p + name.n - n, suffix, n) == 0;

    return ends ? name.n - n : name.n;
}

void families_note(struct families *f, struct str name, const char *suffix, enum family_type type,
                   const char *help)
{
    const struct family *was = families_find(f, name);
    struct family *one;

    if (name.n == 0 || name.n > FAMILY_NAME_MAX || (was && was->type == type && was->help == help))
        return;
    if (was)
        free(map_take(&f->by_name, was->name));
    one = f->by_name.n < FAMILIES_MAX ? calloc(1, sizeof(*one) + name.n + 1) : NULL;
    if (!one)
        return;
    memcpy(one->name, name.p, name.n);
    one->type = type;
    one->help = help;
    one->stem_n = stem_bytes(name, suffix);
    if (map_set(&f->by_name, one->name, one) < 0)
        free(one);
}
