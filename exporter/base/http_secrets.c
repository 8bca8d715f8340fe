/* The secrets of a call: a server may return them in its answer, so no text may show them from now on. */
#include "exporter/base/http_internal.h"
#include "exporter/base/secret.h"

/* Headers whose values are no secrets. All others may be: X-Api-Key, Cookie and so on. */
static const struct str open_headers[] = {
    STR("Accept"),        STR("Content-Encoding"),
    STR("Host"),          STR("X-Prometheus-Remote-Write-Version"),
    STR("X-Scope-OrgID"), STR("X-VictoriaMetrics-Remote-Write-Version"),
};

/* Parts of the names of URL parameters that hold secrets. */
static const struct str secret_words[] = {STR("token"),   STR("key"),  STR("secret"), STR("pass"),
                                          STR("pwd"),     STR("auth"), STR("sig"),    STR("cred"),
                                          STR("session"), STR("jwt")};

static void header_used(const char *header)
{
    const char *colon = strchr(header, ':');
    struct str name = {header, colon ? (size_t)(colon - header) : 0};
    struct str value = str_trim(str_of(colon ? colon + 1 : ""));
    const char *space;

    for (size_t i = 0; i < ARRAY_SIZE(open_headers); i++)
        if (str_eq_nocase(name, open_headers[i]))
            return;
    space = value.n ? memchr(value.p, ' ', value.n) : NULL;
    if (space && str_eq_nocase(name, STR("Authorization"))) /* without the scheme */
        value = str_trim((struct str){space + 1, value.n - (size_t)(space + 1 - value.p)});
    secret_used(value);
}

static bool is_secret_name(struct str name)
{
    for (size_t i = 0; i < name.n; i++)
        for (size_t k = 0; k < ARRAY_SIZE(secret_words); k++)
            if (name.n - i >= secret_words[k].n &&
                str_eq_nocase((struct str){name.p + i, secret_words[k].n}, secret_words[k]))
                return true;
    return false;
}

static void parameters_used(char *query)
{
    char *rest = query;

    for (char *one; (one = strsep(&rest, "&;"));) {
        const char *equal = strchr(one, '=');
        int n = 0;
        char *value;

        if (!equal || !is_secret_name((struct str){one, (size_t)(equal - one)}))
            continue;
        value = curl_easy_unescape(NULL, equal + 1, 0, &n);
        if (value) {
            secret_used((struct str){value, (size_t)n});
            explicit_bzero(value, (size_t)n);
        }
        curl_free(value);
    }
}

static void url_used(const char *url)
{
    CURLU *u = strpbrk(url, "?@") ? curl_url() : NULL;
    char *user = NULL, *password = NULL, *query = NULL;

    if (u && curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK) {
        if (curl_url_get(u, CURLUPART_PASSWORD, &password, CURLU_URLDECODE) == CURLUE_OK) {
            (void)curl_url_get(u, CURLUPART_USER, &user, CURLU_URLDECODE);
            secret_used_basic(str_of(user), str_of(password));
        }
        if (curl_url_get(u, CURLUPART_QUERY, &query, 0) == CURLUE_OK)
            parameters_used(query);
    }
    curl_free(user);
    curl_free(password);
    curl_free(query);
    curl_url_cleanup(u);
}

void http_secrets_used(const struct http_request *rq)
{
    secret_used(rq->bearer);
    if (rq->user && rq->password)
        secret_used_basic(str_of(rq->user), str_of(rq->password));
    for (size_t i = 0; i < rq->n_headers; i++)
        header_used(rq->headers[i]);
    url_used(rq->url);
    if (rq->proxy)
        url_used(rq->proxy);
}
