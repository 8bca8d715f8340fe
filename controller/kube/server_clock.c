/* Reads the Date of answers. Owns nothing: each client has a clock of its API server, which is noted with
 * each answer and read by whoever writes times there. */
#include "controller/kube/server_clock.h"

#include "controller/kube/client.h"
#include "controller/kube/time.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"

#include <stdio.h>

enum { DATE_BYTES = 29, DATE_RESOLUTION_MS = 1000 };

static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/* 1 to 12; 0 for another word. */
static unsigned date_month(const char *word)
{
    for (unsigned i = 0; i < ARRAY_SIZE(months); i++)
        if (memcmp(word, months[i], 3) == 0)
            return i + 1;
    return 0;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT", the form that RFC 9110 asks of servers; 0 for anything else. */
static unix_ms date_parse(struct str date)
{
    char text[KUBE_TIME_BYTES];
    unsigned month;

    if (date.n != DATE_BYTES || memcmp(date.p + 3, ", ", 2) != 0 || memcmp(date.p + 25, " GMT", 4) != 0)
        return (unix_ms){0};
    month = date_month(date.p + 8);
    if (!month)
        return (unix_ms){0};
    (void)snprintf(text, sizeof(text), "%.4s-%02u-%.2sT%.8sZ", date.p + 12, month, date.p + 5, date.p + 17);
    return kube_time_parse(text);
}

static bool server_clock_is_skewed(const struct server_clock *c)
{
    return c->offset_ms > KUBE_CLOCK_SKEWED_MS || c->offset_ms < -KUBE_CLOCK_SKEWED_MS;
}

int64_t kube_clock_offset_by(int64_t offset_ms, struct str date, unix_ms sent, unix_ms received)
{
    int64_t at = date_parse(date).ms;
    /* The answer was made at some moment of that second, and between these two of ours. */
    int64_t least = at - received.ms, most = at + DATE_RESOLUTION_MS - sent.ms, middle;

    if (at == 0 || received.ms < sent.ms)
        return offset_ms;
    if (least <= offset_ms + KUBE_CLOCK_STEP_MS && most >= offset_ms - KUBE_CLOCK_STEP_MS)
        return offset_ms;
    middle = least + (most - least) / 2;
    return middle > -KUBE_CLOCK_STEP_MS && middle < KUBE_CLOCK_STEP_MS ? 0 : middle;
}

void server_clock_note(struct server_clock *c, struct str date, unix_ms sent, unix_ms received,
                       const char *label)
{
    int64_t was = c->offset_ms;

    c->offset_ms = kube_clock_offset_by(was, date, sent, received);
    if (c->offset_ms == was)
        return;
    if (server_clock_is_skewed(c))
        log_warn("this clock is not that of the API server, whose time is used there", L_STR("kube", label),
                 L_INT("offset_ms", c->offset_ms));
    else
        log_info("offset to the clock of the API server", L_STR("kube", label),
                 L_INT("offset_ms", c->offset_ms));
}

unix_ms kube_wall(const struct kube *k)
{
    return (unix_ms){loop_wall(kube_loop(k)).ms + kube_clock_offset_ms(k)};
}

int64_t kube_clock_offset_ms(const struct kube *k)
{
    return kube_server_clock_of(k)->offset_ms;
}

bool kube_clock_is_skewed(const struct kube *k)
{
    return server_clock_is_skewed(kube_server_clock_of(k));
}
