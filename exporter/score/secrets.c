#include "exporter/score/secrets.h"

#include "exporter/base/clock.h"
#include "exporter/base/file.h"
#include "exporter/base/hash.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <stdio.h>

enum {
    PATH_BYTES = 4096,
    SETTLED_AFTER_S = 1, /* file systems count time in steps of some milliseconds, some in seconds */
    READ_TIMES = 3,
};

/* ---- Files ---- */

static int secret_file_path(const struct secret_files *f, const char *name, const char *key,
                            char path[PATH_BYTES])
{
    int n;

    if (!f->dir)
        return -ENOENT;
    n = snprintf(path, PATH_BYTES, "%s/%s%s%s", f->dir, name, *key ? "/" : "", key);
    return n < PATH_BYTES ? 0 : -ENAMETOOLONG;
}

static int secret_file_read(struct secrets *s, const char *name, const char *key, struct buf *into,
                            const char **ret_why)
{
    const struct secret_files *f = CONTAINER_OF(s, struct secret_files, secrets);
    char path[PATH_BYTES];

    (void)ret_why;
    return secret_file_path(f, name, key, path) ?: file_read(path, into);
}

/* False if there is no such file. */
static bool add_stamp(const struct secret_files *f, const char *name, const char *key,
                      struct secret_state *to)
{
    char path[PATH_BYTES];
    struct file_stamp at = {0};

    if (secret_file_path(f, name, key, path) == 0)
        at = file_stamp(path);
    to->stamp = hash_chain_u64(hash_chain_u64(to->stamp, at.device), at.inode);
    to->stamp = hash_chain_u64(hash_chain_u64(to->stamp, (uint64_t)at.size), (uint64_t)at.modified.tv_sec);
    to->stamp = hash_chain_u64(to->stamp, (uint64_t)at.modified.tv_nsec);
    to->is_unsettled |= at.modified.tv_sec + SETTLED_AFTER_S >= clock_system.wall(&clock_system).ms / 1000;
    return at.inode != 0;
}

static int secret_file_look(struct secrets *s, const char *name, const char *token_key,
                            struct secret_state *ret, const char **ret_why)
{
    const struct secret_files *f = CONTAINER_OF(s, struct secret_files, secrets);

    (void)ret_why;
    *ret = (struct secret_state){0};
    if (!add_stamp(f, name, "", ret))
        return -ENOENT;
    for (enum credential k = CREDENTIAL_TOKEN; k < CREDENTIALS; k++) {
        const char *key = credential_key(k) ? credential_key(k) : token_key;
        if (key)
            (void)add_stamp(f, name, key, ret);
    }
    ret->trusts_ca = !add_stamp(f, name, "namespace", ret);
    return 0;
}

void secret_files_init(struct secret_files *f, const char *dir)
{
    *f = (struct secret_files){.secrets = {.look = secret_file_look, .read = secret_file_read}, .dir = dir};
}

/* ---- The cache ---- */

static struct credentials *cache_entry(struct secrets *s, const char *name, const char *token_key)
{
    struct credentials *c;

    LIST_FOREACH (c, &s->cache, entry)
        if (strcmp(c->name, name) == 0 && !c->token_key == !token_key &&
            strcmp(cstr(c->token_key), cstr(token_key)) == 0)
            return c;
    return NULL;
}

static void cache_remove(struct credentials *c)
{
    LIST_REMOVE(c, entry);
    (void)credentials_unref(c);
}

void secrets_forget(struct secrets *s)
{
    while (!LIST_EMPTY(&s->cache))
        cache_remove(LIST_FIRST(&s->cache));
}

static int cache_look_at(struct secrets *s, const char *name, const char *token_key, struct secret_state *ret,
                         char why[256])
{
    const char *problem = NULL;
    int r = s->look(s, name, token_key, ret, &problem), n;

    if (r == 0)
        return 0;
    if (!problem)
        problem = r == -ENOENT ? "not found" : strerror(-r);
    n = token_key ? snprintf(why, 256, "secret \"%.80s\", key \"%.80s\": ", name, token_key)
                  : snprintf(why, 256, "secret \"%.80s\": ", name);
    text_line(why + n, 256 - (size_t)n, str_of(problem));
    return r;
}

/* A volume may be swapped between two of its files: those read before and after it do not belong together. */
static int cache_read(struct secrets *s, const char *name, const char *token_key, struct secret_state *state,
                      struct credentials **ret, char why[256])
{
    struct secret_state before;
    int r = 0;

    for (int i = 0; i < READ_TIMES; i++) {
        *ret = credentials_unref(*ret);
        before = *state;
        r = credentials_new(ret, s, name, token_key, before.trusts_ca, why);
        if (cache_look_at(s, name, token_key, state, why) < 0 || state->stamp == before.stamp)
            break;
    }
    return r;
}

int secrets_get(struct secrets *s, const char *name, const char *token_key, struct credentials **ret,
                char why[256])
{
    CLEANUP(cleanup_credentials_unref) struct credentials *fresh = NULL;
    struct secret_state state;
    struct credentials *c;
    int r;

    *ret = NULL;
    if (!name)
        return 0;
    c = cache_entry(s, name, token_key);
    r = cache_look_at(s, name, token_key, &state, why);
    if (c && (r < 0 || state.is_unsettled || state.stamp != c->stamp)) {
        cache_remove(c);
        c = NULL;
    }
    if (r == 0 && !c) {
        r = cache_read(s, name, token_key, &state, &fresh, why);
        c = fresh;
    }
    if (r < 0)
        return r;
    if (fresh) {
        fresh->stamp = state.stamp;
        LIST_INSERT_HEAD(&s->cache, c, entry);
        fresh = NULL;
    }
    c->refs++;
    *ret = c;
    return 0;
}
