/* The pages' files, which CMake embeds in the program, as HTTP serves them: revalidated by ETag, compressed
 * where the client takes gzip, and with a policy that lets a browser load nothing from elsewhere. */
#ifndef DS_UI_ASSETS_H
#define DS_UI_ASSETS_H

#include "exporter/base/httpd.h"

/* A file as embed.cmake writes it. */
struct asset_file {
    const char *path, *content_type, *hash;
    struct str content;
};
extern const struct asset_file asset_files[];
extern const size_t asset_files_n;

struct assets;

/* Compresses each file. -ENOMEM. */
MUST_USE int assets_new(struct assets **ret);
/* After the server that its routes were given to has stopped. Takes NULL, returns NULL. */
struct assets *assets_free(struct assets *a);
DEFINE_CLEANUP(struct assets, assets_free)

enum { ASSETS_MAX_ROUTES = 16 };

/* Routes of all files, and of the page at each of `pages` (a NULL-terminated list of paths). Returns how
 * many. */
size_t assets_routes(const struct assets *a, const char *const *pages,
                     struct httpd_route ret[ASSETS_MAX_ROUTES]);

#endif
