/* A folder of its own with a web configuration file. */
#pragma once

#include "exporter/base/def.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { FOLDER_BYTES = 64, FILE_BYTES = 128 };

struct folder {
    char path[FOLDER_BYTES];
    char file[FILE_BYTES]; /* PATH/web.yml */
};

static inline void folder_make(struct folder *f)
{
    (void)snprintf(f->path, sizeof(f->path), "/tmp/test-web-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    (void)snprintf(f->file, sizeof(f->file), "%s/web.yml", f->path);
}

static inline void folder_write_as(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");

    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

static inline void folder_write(const struct folder *f, const char *text)
{
    folder_write_as(f->file, text);
}

static inline void folder_remove(const struct folder *f)
{
    char command[FILE_BYTES];

    (void)snprintf(command, sizeof(command), "rm -r %s", f->path);
    assert_int_equal(system(command), 0);
}
