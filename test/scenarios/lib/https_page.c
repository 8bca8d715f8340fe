/* Serves one page by HTTPS until it is ended: https_page KEY CERTIFICATE PORT. */
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_MAX = 8192 };

static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *data, size_t *n,
                                  void **state)
{
    static char page[] = "a page\n";
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(page), page, MHD_RESPMEM_PERSISTENT);
    enum MHD_Result ok = MHD_queue_response(connection, MHD_HTTP_OK, response);

    (void)arg, (void)url, (void)method, (void)version, (void)data, (void)n, (void)state;
    MHD_destroy_response(response);
    return ok;
}

static void read_text(const char *path, char text[FILE_MAX])
{
    FILE *f = fopen(path, "re");

    if (!f)
        exit(1);
    text[fread(text, 1, FILE_MAX - 1, f)] = '\0';
    (void)fclose(f);
}

int main(int argc, char **argv)
{
    static char key[FILE_MAX], certificate[FILE_MAX];

    if (argc != 4 || MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
        return 1;
    read_text(argv[1], key);
    read_text(argv[2], certificate);
    if (!MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_TLS, (uint16_t)atoi(argv[3]), NULL, NULL,
                          on_request, NULL, MHD_OPTION_HTTPS_MEM_KEY, key, MHD_OPTION_HTTPS_MEM_CERT,
                          certificate, MHD_OPTION_END))
        return 1;
    (void)pause();
    return 0;
}
