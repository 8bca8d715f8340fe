/* Where the values of settings come from. */
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/file.h"
#include "exporter/base/problems.h"
#include "exporter/models/instance.h"
#include "exporter/models/instance_internal.h"

#include <errno.h>

int settings_from_defaults(struct instance *i)
{
    int r = 0;

    for (size_t k = 0; r == 0 && k < i->n_settings; k++)
        if (i->settings[k].setting->otherwise)
            r = setting_set(i, &i->settings[k], str_of(i->settings[k].setting->otherwise));
    return r;
}

static bool model_reads_key(const struct model *m, const char *key)
{
    for (const char *const *k = m->file_keys; k && *k; k++)
        if (strcmp(*k, key) == 0)
            return true;
    return false;
}

static int settings_from_node(struct instance *i, const struct node *root, struct problems *p)
{
    int r = 0;

    for (size_t k = 0; r != -ENOMEM && k < i->n_settings; k++) {
        struct instance_setting *s = &i->settings[k];
        const struct node *n = node_given(root, s->key);

        bool is_scalar = n && n->kind != NODE_LIST && n->kind != NODE_MAP;

        if (!n || n->kind == NODE_BROKEN || (!is_scalar && model_reads_key(i->model, s->key)))
            continue;
        r = is_scalar ? setting_set(i, s, n->text) : -EINVAL;
        if (r == -EINVAL)
            node_expected(n, p, "%s", s->expected);
    }
    return r == -ENOMEM ? r : 0;
}

static int settings_check_keys(const struct instance *i, const struct node *root, struct problems *p)
{
    const char *const *more = i->model->file_keys;
    size_t n = i->n_settings;
    CLEANUP(cleanup_free) const char **known = NULL;

    while (more && *more) {
        n++;
        more++;
    }
    known = calloc(n + 1, sizeof(*known));
    if (!known)
        return -ENOMEM;
    for (size_t k = 0; k < i->n_settings; k++)
        known[k] = i->settings[k].key;
    for (size_t k = i->n_settings; k < n; k++)
        known[k] = i->model->file_keys[k - i->n_settings];
    node_only_keys(root, known, PROBLEM_ERROR, p);
    return 0;
}

static int settings_from_file(struct instance *i, const char *path, struct problems *p)
{
    BUF_AUTO(text, INSTANCE_MAX_FILE_BYTES);
    const struct node *root;
    int r = file_read(path, &text);

    if (r < 0 && r != -ENOMEM) {
        problems_add(p, PROBLEM_ERROR, 0, 0, "%s", r == -EFBIG ? "larger than 1 MiB" : strerror(-r));
        return -EINVAL;
    }
    if (r == 0)
        r = doc_parse(&i->doc, buf_str(&text), p);
    if (r < 0)
        return r;
    root = doc_root(i->doc);
    if (root->kind != NODE_MAP && root->kind != NODE_NULL) {
        node_expected(root, p, "an object");
        return -EINVAL;
    }
    r = settings_check_keys(i, root, p) ?: settings_from_node(i, root, p);
    if (r == 0 && i->model->read_file && root->kind == NODE_MAP)
        i->model->read_file(i->state, root, p);
    return r ?: p->out_of_memory ? -ENOMEM : p->errors ? -EINVAL : 0;
}

static int settings_from_environment(struct instance *i, struct problems *p)
{
    int r = 0;

    for (size_t k = 0; r != -ENOMEM && k < i->n_settings; k++) {
        struct instance_setting *s = &i->settings[k];
        const char *name = s->setting->variable, *value = name ? getenv(name) : NULL;
        BUF_AUTO(quoted, 1024);

        if (!value || !*value) {
            name = s->variable;
            value = getenv(name);
        }
        if (!value || !*value) /* as in a manifest that leaves a variable empty */
            continue;
        r = setting_set(i, s, str_of(value));
        if (r == -EINVAL && problem_quote(str_of(value), &quoted) == 0)
            problems_add(p, PROBLEM_ERROR, 0, 0, "%s: expected %s, got %.*s", name, s->expected,
                         STR_ARG(buf_str(&quoted)));
    }
    return r == -ENOMEM || p->out_of_memory ? -ENOMEM : p->errors ? -EINVAL : 0;
}

static int settings_from_flags(struct instance *i)
{
    int r = 0;

    for (size_t k = 0; r == 0 && k < i->n_settings; k++)
        if (i->settings[k].flag)
            r = setting_set(i, &i->settings[k], str_of(i->settings[k].flag));
    return r;
}

int instance_configure(struct instance *i, const char *path, struct problems *file, struct problems *others)
{
    int r = path ? settings_from_file(i, path, file) : 0, more;

    if (r == -ENOMEM)
        return r;
    more = settings_from_environment(i, others) ?: settings_from_flags(i);
    return r ?: more;
}
