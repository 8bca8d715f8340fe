/* Secrets in files <dir>/<name>/<key>. Loop thread. */
#pragma once

#include "exporter/score/secrets.h"

/* The ca.crt of a folder with a file `namespace` does not count: a service
 * account's is that of its API server. */
struct secret_files {
    struct secrets secrets;
    const char *dir; /* not owned; NULL: there are no Secrets */
};

void secret_files_init(struct secret_files *f, const char *dir);
