/* Owns the level and the format, both atomic. Any thread; no lock of its own: a line is built on the stack
 * and is one write(2), so lines do not mix. Nothing here allocates or fails. */
#include "exporter/base/log.h"

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/escape.h"
#include "exporter/base/secret.h"
#include "exporter/base/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>

enum { LINE_MAX_BYTES = 32 << 10, VALUE_MAX_BYTES = 4096 /* six times as many with escapes */ };

static _Atomic int log_level = LOG_LEVEL_INFO;
static _Atomic int log_format = LOG_FORMAT_LOGFMT;
const char *const log_levels[] = {"debug", "info", "warn", "error", NULL};
const char *const log_formats[] = {"logfmt", "json", NULL};

void log_setup(enum log_level level, enum log_format format)
{
    atomic_store(&log_level, (int)level);
    atomic_store(&log_format, (int)format);
}

bool log_enabled(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&log_level, memory_order_relaxed);
}

static bool needs_quotes(struct str s)
{
    if (s.n == 0 || s.n > VALUE_MAX_BYTES || utf8_valid_prefix(s) < s.n)
        return true;
    for (size_t i = 0, n; i < s.n; i += n) {
        n = utf8_char((struct str){s.p + i, s.n - i});
        if (s.p[i] == ' ' || s.p[i] == '"' || s.p[i] == '=' || s.p[i] == '\\' || utf8_is_control(s.p + i, n))
            return true;
    }
    return false;
}

static void line_put_text(struct buf *l, struct str text, bool json)
{
    struct str shown = utf8_cut(text, VALUE_MAX_BYTES);

    if (!json && !needs_quotes(text)) {
        buf_put_str(l, text);
        return;
    }
    buf_put_json_visible(l, shown);
    if (shown.n < text.n && buf_failed(l) == 0) {
        buf_truncate(l, l->n - 1); /* the quote */
        buf_puts(l, "...\"");
    }
}

static void line_put_value(struct buf *l, const struct log_field *f, bool json)
{
    switch (f->kind) {
    case LOG_FIELD_INT:
        buf_printf(l, "%lld", (long long)f->i);
        break;
    case LOG_FIELD_DOUBLE: /* JSON has no numbers that are not finite */
        buf_printf(l, json && !isfinite(f->d) ? "\"%g\"" : "%.6g", f->d);
        break;
    case LOG_FIELD_STR:
        line_put_text(l, f->s, json);
        break;
    }
}

/* A field that does not fit is omitted as a whole. */
static void line_put_field(struct buf *l, const struct log_field *f, bool json)
{
    struct buf_mark mark = buf_mark(l);
    bool is_first = mark.n == (json ? strlen("{") : 0);

    if (!is_first)
        buf_putc(l, json ? ',' : ' ');
    buf_printf(l, json ? "\"%s\":" : "%s=", f->key);
    line_put_value(l, f, json);
    if (buf_failed(l) < 0)
        buf_rollback(l, mark);
}

void log_write(enum log_level level, const char *msg, const struct log_field *fields)
{
    /* Memory of its own: the line may say that there is no other. Three bytes are for the end. */
    char memory[LINE_MAX_BYTES];
    struct buf l = {.p = memory, .cap = sizeof(memory), .max = sizeof(memory) - 3};
    /* Read once: a reload may change it meanwhile, and a line has one format. */
    bool json = atomic_load_explicit(&log_format, memory_order_relaxed) == LOG_FORMAT_JSON;
    char ts[32];
    size_t off = 0;

    unix_ms_format(clock_system.wall(&clock_system), ts);
    if (json)
        buf_putc(&l, '{');
    line_put_field(&l, &L_STR("ts", ts), json);
    line_put_field(&l, &L_STR("level", log_levels[level]), json);
    line_put_field(&l, &L_STR("msg", msg), json);
    for (; fields->key; fields++)
        line_put_field(&l, fields, json);
    l.n = secret_hide(l.p, l.n);
    l.n = (size_t)(stpcpy(l.p + l.n, json ? "}\n" : "\n") - l.p);
    while (off < l.n) {
        ssize_t w = write(STDERR_FILENO, l.p + off, l.n - off);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return; /* nowhere to report it */
        off += (size_t)w;
    }
}
