/* One line per event on stderr: logfmt or JSON, with a time, a level, a message and typed fields:
 *
 *     log_warn("round failed", L_STR("scorer", name), L_INT("series", n));
 *
 * Secrets in use are hidden (secret.h). Any thread: a line is one write(2). A value is cut after 4 KiB. */
#pragma once

#include "exporter/base/str.h"

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };
enum log_format { LOG_FORMAT_LOGFMT, LOG_FORMAT_JSON };
/* Their words, ended by NULL. */
extern const char *const log_levels[], *const log_formats[];

struct log_field {
    const char *key;
    enum { LOG_FIELD_STR, LOG_FIELD_INT, LOG_FIELD_DOUBLE } kind;
    struct str s;
    int64_t i;
    double d;
};

#define L_STR(k, v) ((struct log_field){.key = (k), .kind = LOG_FIELD_STR, .s = str_of(v)})
#define L_SL(k, v)  ((struct log_field){.key = (k), .kind = LOG_FIELD_STR, .s = (v)})
#define L_INT(k, v) ((struct log_field){.key = (k), .kind = LOG_FIELD_INT, .i = (int64_t)(v)})
#define L_DBL(k, v) ((struct log_field){.key = (k), .kind = LOG_FIELD_DOUBLE, .d = (v)})
/* A negative errno, as its text. */
#define L_ERR(r) L_STR("err", strerror((r) < 0 ? -(r) : (r)))

/* Also while other threads write: each line has one format. */
void log_setup(enum log_level level, enum log_format format);
bool log_enabled(enum log_level level);
/* The first field without a key ends the list. */
void log_write(enum log_level level, const char *msg, const struct log_field *fields);

#define LOG_AT(level, msg, ...)                                                                         \
    do {                                                                                                \
        if (log_enabled(level))                                                                         \
            log_write(level, msg, (const struct log_field[]){__VA_ARGS__ __VA_OPT__(, ){.key = NULL}}); \
    } while (0)
#define log_debug(...) LOG_AT(LOG_LEVEL_DEBUG, __VA_ARGS__)
#define log_info(...)  LOG_AT(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_warn(...)  LOG_AT(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_error(...) LOG_AT(LOG_LEVEL_ERROR, __VA_ARGS__)
