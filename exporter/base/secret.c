/* Owns the table of secrets in use, behind `lock`. The table has only seeded hashes: of each form's first 8
 * bytes, to find it, and of the whole form, to be sure. */
#include "exporter/base/secret.h"

#include "exporter/base/alloc.h"
#include "exporter/base/clock.h"
#include "exporter/base/hash.h"
#include "exporter/base/invariant.h"
#include "exporter/base/lock.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

enum {
    MIN_BYTES = 8,
    FIRST_SLOTS = 256,
    MAX_SLOTS = 1 << 16, /* 1.5 MB */
    KEEP_SECONDS = 24 * 3600,
    KEEP_FULL_SECONDS = 3600,
};

struct form {
    uint64_t head, whole;
    uint32_t n;      /* 0: free */
    uint32_t used_s; /* clock_seconds() of the last use */
};

static struct lock lock = LOCK_INIT;
static struct form *forms;
static size_t n_forms, slots;
static atomic_bool any; /* no lock is taken before the first secret */

static uint64_t head_of(const char *p)
{
    return hash_bytes((struct str){p, MIN_BYTES});
}

static void forms_put(struct form f)
{
    size_t at = f.head & (slots - 1);

    while (forms[at].n && (forms[at].whole != f.whole || forms[at].n != f.n))
        at = (at + 1) & (slots - 1);
    n_forms += forms[at].n == 0;
    forms[at] = f;
}

/* Makes room for one more. Leaves out forms that were not used for a day; of a full table, those not used for
 * an hour, and what exceeds half of it: they come back with their next use. */
static void forms_grow(void)
{
    uint32_t now = (uint32_t)clock_seconds(), keep = slots < MAX_SLOTS ? KEEP_SECONDS : KEEP_FULL_SECONDS;
    size_t old_slots = slots;
    struct form *old = forms;

    if ((n_forms + 1) * 2 <= slots)
        return;
    slots = slots ? size_min(slots * 2, MAX_SLOTS) : FIRST_SLOTS;
    forms = xcalloc(slots, sizeof(*forms));
    n_forms = 0;
    for (size_t i = 0; i < old_slots && n_forms < slots / 4; i++)
        if (old[i].n && now - old[i].used_s <= keep)
            forms_put(old[i]);
    free(old);
}

static void form_used(struct str text)
{
    invariant(lock_is_held(&lock));
    if (text.n < MIN_BYTES || text.n > UINT32_MAX)
        return;
    forms_grow();
    forms_put((struct form){.head = head_of(text.p),
                            .whole = hash_bytes(text),
                            .n = (uint32_t)text.n,
                            .used_s = (uint32_t)clock_seconds()});
    atomic_store(&any, true);
}

/* The base64 digits that any text has which contains the value at an offset of `skip` modulo 3: the ones that
 * depend on the value alone. */
static void base64_digits(struct str value, size_t skip, struct buf *digits)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const size_t first_bits[] = {0, 4, 2}; /* by the bytes before the value */
    char *room;

    digits->n = 0;
    if (buf_reserve(digits, value.n * 4 / 3 + 1, &room) < 0)
        return;
    for (size_t bit = first_bits[skip]; bit + 6 <= value.n * 8; bit += 6) {
        unsigned pair = (unsigned)(unsigned char)value.p[bit / 8] << 8;

        if (bit / 8 + 1 < value.n)
            pair |= (unsigned char)value.p[bit / 8 + 1];
        room[digits->n++] = alphabet[pair >> (10 - bit % 8) & 63];
    }
}

void secret_used(struct str value)
{
    SECRET_AUTO(digits, SIZE_MAX / 4);

    if (value.n < MIN_BYTES || value.n > UINT32_MAX / 2)
        return;
    lock_take(&lock);
    form_used(value);
    for (size_t skip = 0; skip < 3; skip++) {
        base64_digits(value, skip, &digits);
        form_used(buf_str(&digits));
        for (char *p = digits.p; p < digits.p + digits.n; p++)
            *p = *p == '+' ? '-' : *p == '/' ? '_' : *p; /* the URL alphabet */
        form_used(buf_str(&digits));
    }
    lock_release(&lock);
}

void secret_used_basic(struct str user, struct str password)
{
    SECRET_AUTO(pair, SIZE_MAX / 4);
    SECRET_AUTO(digits, SIZE_MAX / 4);
    char *room;

    secret_used(password);
    if (buf_reserve(&pair, user.n + password.n + 1, &room) < 0)
        return;
    buf_put_str(&pair, user);
    buf_putc(&pair, ':');
    buf_put_str(&pair, password);
    secret_used(buf_str(&pair));
    base64_digits(buf_str(&pair), 0, &digits);
    secret_used(buf_str(&digits));
}

/* Length of the longest secret that text starts with, or 0. */
static size_t secret_at(const char *text, size_t n)
{
    uint64_t head = head_of(text);
    size_t longest = 0;

    for (size_t at = head & (slots - 1); forms[at].n; at = (at + 1) & (slots - 1)) {
        const struct form *f = &forms[at];

        if (f->head == head && f->n <= n && f->n > longest &&
            hash_bytes((struct str){text, f->n}) == f->whole)
            longest = f->n;
    }
    return longest;
}

/* One byte that may be written as an escape; returns the escape's length, 1 for none. */
static size_t unescape(const char *p, size_t n, char *ret)
{
    static const struct {
        struct str text;
        char c;
    } words[] = {
        {STR("&amp;"), '&'}, {STR("&lt;"), '<'},   {STR("&gt;"), '>'},  {STR("&quot;"), '"'},
        {STR("&#34;"), '"'}, {STR("&#39;"), '\''}, {STR("&#43;"), '+'}, {STR("&#x27;"), '\''},
        {STR("\\/"), '/'},   {STR("\\\""), '"'},   {STR("\\\\"), '\\'},
    };
    char digits[5] = {0}, *end;
    size_t from = 0, count = 0; /* hexadecimal digits */
    unsigned long v;

    *ret = *p;
    if (*p == '%') {
        from = 1;
        count = 2;
    } else if (n > 2 && *p == '\\' && p[1] == 'u') {
        from = 2;
        count = 4;
    }
    if (from && n >= from + count) {
        memcpy(digits, p + from, count);
        v = strtoul(digits, &end, 16);
        if (*end == '\0' && v <= 0xff && digits[0] != '-' && digits[0] != '+' && digits[0] != ' ') {
            *ret = (char)v;
            return from + count;
        }
    }
    for (size_t i = 0; (*p == '&' || *p == '\\') && i < ARRAY_SIZE(words); i++)
        if (str_starts((struct str){p, n}, words[i].text)) {
            *ret = words[i].c;
            return words[i].text.n;
        }
    return 1;
}

/* Masks secrets in the text; with `resolve`, those that are written with escapes. */
static size_t hide_forms(char *text, size_t n, bool resolve)
{
    static const char mask[] = "***";
    SECRET_AUTO(plain, n);
    CLEANUP(cleanup_free) uint32_t *from = xmalloc((n + 1) * sizeof(*from)); /* where each byte is written */
    size_t out = 0, kept = 0;
    char *p;

    invariant(lock_is_held(&lock));
    if (buf_reserve(&plain, n, &p) < 0)
        memory_exhausted(n);
    for (size_t i = 0; i < n; plain.n++) {
        from[plain.n] = (uint32_t)i;
        p[plain.n] = text[i];
        i += resolve ? unescape(text + i, n - i, &p[plain.n]) : 1;
    }
    from[plain.n] = (uint32_t)n;
    for (size_t i = 0; i + MIN_BYTES <= plain.n;) {
        size_t found = secret_at(p + i, plain.n - i);

        if (found) {
            memmove(text + out, text + kept, from[i] - kept);
            out += from[i] - kept;
            memcpy(text + out, mask, sizeof(mask) - 1);
            out += sizeof(mask) - 1;
            kept = from[i + found];
        }
        i += found ? found : 1;
    }
    memmove(text + out, text + kept, n - kept);
    return out + n - kept;
}

size_t secret_hide(char *text, size_t n)
{
    if (!atomic_load_explicit(&any, memory_order_relaxed) || n < MIN_BYTES || n > UINT32_MAX)
        return n;
    lock_take(&lock);
    n = hide_forms(text, n, false);
    if (memchr(text, '%', n) || memchr(text, '\\', n) || memchr(text, '&', n))
        n = hide_forms(text, n, true);
    lock_release(&lock);
    return n;
}

void secret_hide_text(char *text)
{
    text[secret_hide(text, strlen(text))] = '\0';
}

void secret_done(struct buf *b)
{
    if (b->p)
        explicit_bzero(b->p, b->cap);
    buf_done(b);
}

char *secret_free(char *s)
{
    if (s)
        explicit_bzero(s, strlen(s));
    free(s);
    return NULL;
}

const char *secret_token(struct str value, struct str *ret)
{
    struct str token = str_trim(value);

    if (token.n == 0)
        return "empty";
    for (size_t i = 0; i < token.n; i++)
        if (token.p[i] <= ' ' || token.p[i] > '~')
            return "not a token: it contains white space or characters not allowed in a header";
    *ret = token;
    return NULL;
}

/* ---- Digests ---- */

enum { DIGEST_BYTES = 32, KEY_BYTES = 32 };

static unsigned char digest_key[KEY_BYTES];

static void digest_make_key(void)
{
    if (gnutls_rnd(GNUTLS_RND_KEY, digest_key, sizeof(digest_key)) < 0)
        abort();
}

void digest_parts(char ret[DIGEST_TEXT_BYTES], const struct str *parts, size_t n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    unsigned char digest[DIGEST_BYTES];
    gnutls_hmac_hd_t mac;

    (void)pthread_once(&once, digest_make_key);
    if (gnutls_hmac_init(&mac, GNUTLS_MAC_SHA256, digest_key, sizeof(digest_key)) < 0)
        abort();
    for (size_t i = 0; i < n; i++)
        if (gnutls_hmac(mac, &parts[i].n, sizeof(parts[i].n)) < 0 ||
            (parts[i].n && gnutls_hmac(mac, parts[i].p, parts[i].n) < 0))
            abort();
    gnutls_hmac_deinit(mac, digest);
    for (size_t i = 0; i < sizeof(digest); i++)
        (void)snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}
