/* The web configuration file (--web.config.file), as exporter-toolkit 0.17 defines it, in YAML or JSON. */
#pragma once

#include "exporter/base/doc.h"
#include "exporter/http/httpd.h"
#include "exporter/http/tls.h"

enum {
    WEB_FILE_MAX_USERS = 1000,
    WEB_FILE_HEADERS = 5,
    BCRYPT_BYTES = 60,    /* of a hash, without a NUL */
    BCRYPT_MAX_COST = 18, /* one comparison takes a quarter of a minute */
};

/* Strings belong to `doc` or `arena`. */
struct web_file {
    struct arena arena;
    struct doc *doc;
    bool has_tls; /* TLS is to be served */
    struct httpd_tls_settings tls;
    struct httpd_header headers[WEB_FILE_HEADERS];
    size_t n_headers;
    const struct node *const *users; /* key: the name; text: the hash */
    size_t n_users;
    int64_t interval_ms; /* of the rate limit; 0: none */
    int64_t burst;
};

/* The cost of a hash; 0 if it is none with $2a$, $2b$ or $2y$ and a cost from 4 to 31. */
unsigned bcrypt_cost(struct str hash);

/* Reads `text`, whose relative paths are relative to `dir`, and no other file. -EINVAL and problems in p. */
MUST_USE int web_file_parse(struct web_file **ret, struct str text, const char *dir, struct problems *p);
struct web_file *web_file_free(struct web_file *f);
DEFINE_CLEANUP(struct web_file, web_file_free)

/* Reads the file at `path`; relative paths in it are relative to its folder. -EINVAL and problems in p. */
MUST_USE int web_file_read(struct web_file **ret, const char *path, struct problems *p);
/* Reads the certificates of a file, if it has TLS. -EINVAL and a problem in p. */
MUST_USE int web_file_tls(const struct web_file *f, struct httpd_tls **ret, struct problems *p);
