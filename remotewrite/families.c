/* Owns the names, and of each its type and help. Called by the intake and by what makes labels, on the
 * endpoint's thread. It never has more than FAMILIES_MAX names: others have no metadata. */
#include "remotewrite/families.h"

#include "exporter/base/alloc.h"
#include "exporter/base/strset.h"

void families_done(struct families *f)
{
    for (size_t i = 0; i < f->names.n; i++)
        free(f->list[i]);
    strset_done(&f->names);
}

const struct family *families_find(const struct families *f, struct str name)
{
    size_t i = strset_find(&f->names, name);

    return i == SIZE_MAX ? NULL : f->list[i];
}

void families_note(struct families *f, struct str name, const char *suffix, enum metric_type type,
                   const char *help)
{
    size_t i = strset_find(&f->names, name), n = strlen(suffix);
    struct family *one = i == SIZE_MAX ? NULL : f->list[i];
    bool ends = name.n > n && memcmp(name.p + name.n - n, suffix, n) == 0;

    if (one && one->type == type && one->help == help)
        return;
    if (!one && (name.n == 0 || name.n > FAMILY_NAME_MAX || f->names.n >= FAMILIES_MAX))
        return;
    if (!one) {
        one = xcalloc(1, sizeof(*one) + name.n + 1);
        memcpy(one->name, name.p, name.n);
        f->list[strset_add(&f->names, (struct str){one->name, name.n})] = one;
    }
    one->type = type;
    one->help = help;
    one->stem_n = ends ? name.n - n : name.n;
}
