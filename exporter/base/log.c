#include "exporter/base/log.h"

#include "exporter/base/clock.h"
#include "exporter/base/def.h"
#include "exporter/base/secret.h"
#include "exporter/base/text.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>

enum { LINE_MAX_BYTES = 16384, VALUE_MAX_BYTES = 4096 };

static _Atomic int log_level = LOG_LEVEL_INFO;
static enum log_format log_format = LOG_FORMAT_LOGFMT;
static const char *const level_words[] = {"debug", "info", "warn", "error"};
static const char *const format_words[] = {"logfmt", "json"};

/* A line under construction. A field that does not fit is omitted as a whole. */
struct line {
    char p[LINE_MAX_BYTES];
    size_t n;
    bool full; /* the current field did not fit */
};

void log_setup(enum log_level level, enum log_format format)
{
    atomic_store(&log_level, (int)level);
    log_format = format;
}

static int find_word(struct str word, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(word, str_of(words[i])))
            return (int)i;
    return -1;
}

bool log_level_parse(struct str word, enum log_level *ret)
{
    int i = find_word(word, level_words, ARRAY_SIZE(level_words));

    if (i >= 0)
        *ret = (enum log_level)i;
    return i >= 0;
}

bool log_format_parse(struct str word, enum log_format *ret)
{
    int i = find_word(word, format_words, ARRAY_SIZE(format_words));

    if (i >= 0)
        *ret = (enum log_format)i;
    return i >= 0;
}

bool log_enabled(enum log_level level)
{
    return (int)level >= atomic_load_explicit(&log_level, memory_order_relaxed);
}

static void line_put(struct line *l, const char *p, size_t n)
{
    /* Reserves room for the braces and the line end. */
    l->full |= n > sizeof(l->p) - 8 - l->n;
    if (l->full)
        return;
    memcpy(l->p + l->n, p, n);
    l->n += n;
}

/* Writes a character of n bytes (0 if ill-formed) as it appears in quotes; returns the length. */
static size_t quote_char(const char *p, size_t n, char out[8])
{
    unsigned char c = (unsigned char)*p;

    if (n == 0) {
        memcpy(out, "\xef\xbf\xbd", 3);
        return 3;
    }
    if (c == '"' || c == '\\' || c == '\n') {
        out[0] = '\\';
        out[1] = c == '\n' ? 'n' : (char)c;
        return 2;
    }
    if (c < 0x20 || c == 0x7f)
        return (size_t)snprintf(out, 8, "\\u%04x", c);
    memcpy(out, p, n);
    return n;
}

static void line_put_quoted(struct line *l, struct str s)
{
    size_t left = VALUE_MAX_BYTES;

    line_put(l, "\"", 1);
    while (s.n) {
        size_t n = utf8_char(s), k;
        char out[8];

        k = quote_char(s.p, n, out);
        if (k > left)
            break;
        line_put(l, out, k);
        left -= k;
        n = n ? n : utf8_bad_part(s);
        s = (struct str){s.p + n, s.n - n};
    }
    if (s.n)
        line_put(l, "...", 3);
    line_put(l, "\"", 1);
}

static bool needs_quotes(struct str s)
{
    if (s.n == 0 || s.n > VALUE_MAX_BYTES || utf8_valid_prefix(s) < s.n)
        return true;
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] <= ' ' || s.p[i] == '"' || s.p[i] == '=' || s.p[i] == '\\' ||
            s.p[i] == 0x7f)
            return true;
    return false;
}

static void line_put_value(struct line *l, const struct log_field *f)
{
    char num[40];
    bool quoted = log_format == LOG_FORMAT_JSON && !isfinite(f->d); /* JSON has no such numbers */

    switch (f->kind) {
    case LOG_FIELD_STR:
        if (log_format == LOG_FORMAT_JSON || needs_quotes(f->s))
            line_put_quoted(l, f->s);
        else
            line_put(l, f->s.p, f->s.n);
        break;
    case LOG_FIELD_INT:
        line_put(l, num, (size_t)snprintf(num, sizeof(num), "%lld", (long long)f->i));
        break;
    case LOG_FIELD_DOUBLE:
        line_put(l, num, (size_t)snprintf(num, sizeof(num), quoted ? "\"%g\"" : "%.6g", f->d));
        break;
    }
}

static void line_put_field(struct line *l, const struct log_field *f)
{
    bool json = log_format == LOG_FORMAT_JSON;
    size_t mark = l->n;

    l->full = false;
    if (l->n)
        line_put(l, json ? "," : " ", 1);
    if (json)
        line_put(l, "\"", 1);
    line_put(l, f->key, strlen(f->key));
    line_put(l, json ? "\":" : "=", json ? 2 : 1);
    line_put_value(l, f);
    if (l->full)
        l->n = mark;
}

void log_write(enum log_level level, const char *msg, const struct log_field *fields)
{
    bool json = log_format == LOG_FORMAT_JSON;
    struct line l = {.n = 0};
    char ts[32];
    size_t off = 0;

    unix_ms_format(clock_system.wall(&clock_system), ts);
    line_put_field(&l, &L_STR("ts", ts));
    line_put_field(&l, &L_STR("level", level_words[level]));
    line_put_field(&l, &L_STR("msg", msg));
    for (; fields->key; fields++)
        line_put_field(&l, fields);
    if (json) {
        memmove(l.p + 1, l.p, l.n);
        l.p[0] = '{';
        l.n++;
        l.p[l.n++] = '}';
    }
    l.n = secret_hide(l.p, l.n);
    l.p[l.n++] = '\n';
    while (off < l.n) {
        ssize_t w = write(STDERR_FILENO, l.p + off, l.n - off);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return; /* nowhere to report it */
        off += (size_t)w;
    }
}
