/* Fields of summaries by type: words, seconds, Secrets, URLs. */
#include "exporter/base/arena.h"
#include "exporter/base/buf.h"
#include "exporter/base/doc.h"
#include "exporter/base/http.h"
#include "exporter/base/problems.h"
#include "exporter/score/summary_read.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <strings.h>

enum { SECRET_NAME_MAX = 253 /* as Kubernetes names objects */ };

char *field_keep(struct summary_reader *r, struct str text)
{
    char *copy = arena_alloc(r->arena, text.n + 1);

    r->no_memory = r->no_memory || !copy;
    if (copy)
        *(char *)mempcpy(copy, text.p, text.n) = '\0';
    return copy;
}

char *field_text(struct summary_reader *r, const char *key)
{
    struct str s = {0};

    return node_str(r->map, key, r->p, &s) && s.n ? field_keep(r, s) : NULL;
}

unsigned field_choice(struct summary_reader *r, const char *key, const char *const *words)
{
    struct str s = {0};
    BUF_AUTO(list, 256);

    if (!node_str(r->map, key, r->p, &s) || s.n == 0)
        return 0;
    for (unsigned i = 0; words[i]; i++)
        if (str_eq_nocase(s, str_of(words[i])))
            return i;
    if (problem_choices(words, &list) < 0)
        r->no_memory = true;
    node_expected(node_get(r->map, key), r->p, "%.*s", STR_ARG(buf_str(&list)));
    return 0;
}

/* A Go program writes zero for a number that was never set. */
int64_t field_seconds(struct summary_reader *r, const char *key, int64_t max, int64_t fallback)
{
    const struct node *n = node_given(r->map, key);
    int64_t v;

    if (!n || (node_to_int(n, &v) && v == 0))
        return fallback;
    if (node_to_int(n, &v) && v >= 1 && v <= max)
        return v;
    node_expected(n, r->p, "a whole number of seconds from 1 to %" PRId64, max);
    return fallback;
}

static bool is_file_name(struct str s)
{
    return s.n > 0 && s.n <= SECRET_NAME_MAX && s.p[0] != '.' && str_has_only(s, "-_.");
}

static char *read_file_name(struct summary_reader *r, const char *key)
{
    struct str s = {0};

    if (!node_str(r->map, key, r->p, &s) || s.n == 0)
        return NULL;
    if (is_file_name(s))
        return field_keep(r, s);
    node_expected(node_get(r->map, key), r->p,
                  "at most 253 letters, digits, '-', '_' and '.', not starting with '.'");
    return NULL;
}

static bool is_set(const struct summary_reader *r, const char *key)
{
    const struct node *n = node_given(r->map, key);

    return n && !(n->kind == NODE_STRING && n->text.n == 0);
}

/* Without a key, the Secret has credentials of other kinds. */
void field_secret(struct summary_reader *r, const char *name_key, const char *key_key, struct secret_ref *ret)
{
    ret->name = read_file_name(r, name_key);
    ret->key = read_file_name(r, key_key);
    if (is_set(r, key_key) && !is_set(r, name_key))
        node_problem(node_get(r->map, key_key), r->p, PROBLEM_ERROR, "%s must be set too", name_key);
}

/* *ret: the URL, with the path added if it has none. False if it is not a URL. */
static bool complete_url(struct summary_reader *r, const char *url, const char *path, char **ret)
{
    CURLU *u = curl_url();
    char *there = NULL, *whole = NULL;
    CURLUcode c = u ? curl_url_set(u, CURLUPART_URL, url, 0) : CURLUE_OUT_OF_MEMORY;

    if (c == CURLUE_OK)
        c = curl_url_get(u, CURLUPART_PATH, &there, 0);
    if (c == CURLUE_OK && strcmp(there, "/") == 0) {
        c = curl_url_set(u, CURLUPART_PATH, path, 0);
        if (c == CURLUE_OK)
            c = curl_url_get(u, CURLUPART_URL, &whole, 0);
    }
    if (c == CURLUE_OK)
        *ret = field_keep(r, str_of(whole ? whole : url));
    curl_free(there);
    curl_free(whole);
    curl_url_cleanup(u);
    if (c == CURLUE_OUT_OF_MEMORY)
        r->no_memory = true;
    return c == CURLUE_OK || c == CURLUE_OUT_OF_MEMORY;
}

char *field_url(struct summary_reader *r, const char *key, const char *path)
{
    static const char what[] = "an absolute http or https URL with a host";
    CLEANUP(cleanup_free) char *url = NULL;
    struct str s = {0};
    char *whole = NULL;

    if (!node_given(r->map, key)) {
        node_missing(r->map, key, r->p, what);
        return NULL;
    }
    if (!node_str(r->map, key, r->p, &s))
        return NULL;
    url = str_dup(str_trim(s));
    r->no_memory = r->no_memory || !url;
    if (url && (!http_is_url(str_of(url)) || !complete_url(r, url, path, &whole)))
        node_expected(node_get(r->map, key), r->p, what);
    return whole;
}
