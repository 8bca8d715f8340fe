/* Pure: from the header's text to an answer, without memory of anything. Any thread. */
#include "exporter/metric/negotiate.h"

#include "exporter/base/str.h"

/* 0..1000; an invalid value counts as 0, so that it selects nothing. */
static int q_value(struct str s)
{
    int q = 0, unit = 1000;

    if (s.n == 0 || s.n > 5 || (s.p[0] != '0' && s.p[0] != '1') || (s.n > 1 && s.p[1] != '.'))
        return 0;
    q = (s.p[0] - '0') * 1000;
    for (size_t i = 2; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return 0;
        unit /= 10;
        q += (s.p[i] - '0') * unit;
    }
    return q > 1000 ? 0 : q;
}

/* One element of an Accept or Accept-Encoding header with the parameters that matter. */
struct wish {
    struct str what, version;
    int q;
};

static struct wish wish_read(struct str element)
{
    struct wish w = {.what = str_trim(str_take(&element, ';')), .q = 1000};

    while (element.n) {
        struct str value = str_trim(str_take(&element, ';'));
        struct str key = str_trim(str_take(&value, '='));
        value = str_trim(value);
        if (value.n >= 2 && value.p[0] == '"' && value.p[value.n - 1] == '"')
            value = (struct str){value.p + 1, value.n - 2};
        if (str_eq_nocase(key, STR("q")))
            w.q = q_value(value);
        else if (str_eq_nocase(key, STR("version")))
            w.version = value;
    }
    return w;
}

static bool wish_matches(enum expo_format f, const struct wish *w)
{
    if (str_eq(w->what, STR("*/*")))
        return f == EXPO_TEXT;
    if (f == EXPO_TEXT)
        return str_eq_nocase(w->what, STR("text/*")) ||
               (str_eq_nocase(w->what, STR("text/plain")) &&
                (w->version.n == 0 || str_eq(w->version, STR("0.0.4"))));
    if (!str_eq_nocase(w->what, STR("application/openmetrics-text")))
        return false;
    if (f == EXPO_OPENMETRICS_001)
        return str_eq(w->version, STR("0.0.1"));
    return w->version.n == 0 || str_eq(w->version, STR("1.0.0"));
}

enum expo_format negotiate_format(const char *accept)
{
    struct str rest = str_of(accept);
    enum expo_format best = EXPO_TEXT;
    int best_q = 0;

    while (rest.n) {
        struct wish w = wish_read(str_trim(str_take(&rest, ',')));
        for (enum expo_format f = EXPO_TEXT; f < EXPO_FORMATS; f++)
            /* Of equal wishes the richer format wins. */
            if (wish_matches(f, &w) && (w.q > best_q || (w.q == best_q && w.q > 0 && f > best))) {
                best = f;
                best_q = w.q;
            }
    }
    return best;
}

bool negotiate_gzip(const char *accept_encoding)
{
    struct str rest = str_of(accept_encoding);
    int gzip = -1, any = -1, identity = -1;

    while (rest.n) {
        struct wish w = wish_read(str_trim(str_take(&rest, ',')));
        if (str_eq_nocase(w.what, STR("gzip")) || str_eq_nocase(w.what, STR("x-gzip")))
            gzip = w.q;
        else if (str_eq(w.what, STR("*")))
            any = w.q;
        else if (str_eq_nocase(w.what, STR("identity")))
            identity = w.q;
    }
    if (gzip < 0)
        gzip = any;
    if (identity < 0) /* "*" covers it too; without either it is always acceptable */
        identity = any;
    return gzip > 0 && gzip >= identity;
}

const char *const expo_content_types[EXPO_FORMATS] = {
    [EXPO_TEXT] = "text/plain; version=0.0.4; charset=utf-8",
    [EXPO_OPENMETRICS_001] = "application/openmetrics-text; version=0.0.1; charset=utf-8",
    [EXPO_OPENMETRICS_1] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
};
