#include "exporter/models/llm_text.h"

#include "exporter/base/json.h"
#include "exporter/base/text.h"
#include "exporter/num/num.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { TEXT_MAX = 1 << 20, NUMBER_MAX = 64 };

/* ---- The prompt ---- */

const char llm_default_template[] = "Predict the next value of this time series.\n"
                                    "Answer with one number and nothing else.\n"
                                    "\n"
                                    "timeseries_kind: ${timeseries_kind}\n"
                                    "app_name: ${app_name}\n"
                                    "${tendency}\n"
                                    "\n"
                                    "timestamp : value\n"
                                    "${values}";

enum { VALUES, LABELS, APP_NAME, TIMESERIES_KIND, TENDENCY, PLACEHOLDERS };
static const char *const placeholders[] = {"${values}", "${labels}", "${app_name}", "${timeseries_kind}",
                                           "${tendency}"};

/* The placeholder at p; PLACEHOLDERS if there is none. */
static size_t placeholder_at(const char *p)
{
    size_t i = 0;

    while (i < PLACEHOLDERS && strncmp(p, placeholders[i], strlen(placeholders[i])) != 0)
        i++;
    return i;
}

static int template_line(const char *template, const char *at)
{
    int line = 1;

    for (; template <at; template ++)
        line += *template == '\n';
    return line;
}

int llm_template_check(const char *template, char **ret_why)
{
    const char *p = strstr(template, "${");
    int n;

    while (p && placeholder_at(p) < PLACEHOLDERS)
        p = strstr(p + 2, "${");
    if (!p && strstr(template, placeholders[VALUES]))
        return 0;
    if (p)
        n = asprintf(ret_why,
                     "line %d: unknown placeholder \"%.*s\"; known are ${values}, ${labels}, ${app_name}, "
                     "${timeseries_kind} and ${tendency}",
                     template_line(template, p), (int)strcspn(p, "} \n") + 1, p);
    else
        n = asprintf(ret_why, "it has no ${values}, so that every series would have the same answer");
    return n < 0 ? -ENOMEM : -EINVAL;
}

static int prompt_put_number(struct buf *into, double v)
{
    char text[NUM_MAX];

    return buf_put(into, text, num_put_double(text, v));
}

static int text_put_unescaped(struct buf *into, struct str raw)
{
    char *room;
    int r = buf_room(into, raw.n * 3, &room);

    if (r == 0)
        into->n += jr_unescape(raw, room);
    return r;
}

static int prompt_put_values(struct buf *into, const struct input_series *s)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < s->n; i++)
        if (isfinite(s->values[i]))
            r = prompt_put_number(into, s->times[i])
                    ?: buf_puts(into, " : ") ?: prompt_put_number(into, s->values[i]) ?: buf_putc(into, '\n');
    return r;
}

static int prompt_put_placeholder(struct buf *into, size_t which, const struct llm_prompt *p,
                                  const struct input_series *s)
{
    struct str name;

    switch (which) {
    case VALUES:
        return prompt_put_values(into, s);
    case LABELS:
        return buf_put_str(into, s->metric);
    case APP_NAME:
        if (series_label(s->metric, "pod", &name) || series_label(s->metric, "namespace", &name))
            return text_put_unescaped(into, name);
        return buf_puts(into, "unknown");
    case TIMESERIES_KIND:
        return buf_puts(into, p->timeseries_kind);
    default:
        return buf_puts(into, p->tendency);
    }
}

int llm_put_prompt(struct buf *into, const struct llm_prompt *p, const struct input_series *s)
{
    int r = 0;

    for (const char *t = p->template; r == 0 && *t;) {
        size_t which = placeholder_at(t), n;

        if (which < PLACEHOLDERS) {
            r = prompt_put_placeholder(into, which, p, s);
            n = strlen(placeholders[which]);
        } else {
            n = 1 + strcspn(t + 1, "$");
            r = buf_put(into, t, n);
        }
        t += n;
    }
    return r;
}

/* ---- The API ---- */

bool llm_is_chat(const char *endpoint)
{
    static const struct str chat = STR("/chat/completions");
    size_t n = strcspn(endpoint, "?#");

    while (n && endpoint[n - 1] == '/')
        n--;
    return n >= chat.n && memcmp(endpoint + n - chat.n, chat.p, chat.n) == 0;
}

int llm_put_request(struct buf *into, bool chat, const char *model, double temperature, int64_t max_tokens,
                    struct str prompt)
{
    return buf_puts(into, "{\"model\":")
               ?: buf_put_json(into, str_of(model))
               ?: buf_puts(into, chat ? ",\"messages\":[{\"role\":\"user\",\"content\":" : ",\"prompt\":")
               ?: buf_put_json(into, prompt)
               ?: buf_puts(into, chat ? "}],\"temperature\":" : ",\"temperature\":")
               ?: prompt_put_number(into, temperature)
               ?: buf_printf(into, ",\"max_tokens\":%lld}", (long long)max_tokens);
}

/* Reads the string at the next value of `key`, in an object; other types count as absent. */
static void answer_read_string(struct jr *j, struct str *ret)
{
    if (jr_peek(j) == JR_STRING)
        (void)jr_string(j, ret);
    else
        (void)jr_skip(j, NULL);
}

/* `text`, or `message.content`. */
static void answer_read_choice(struct jr *j, struct str *ret)
{
    struct str key;

    (void)jr_object(j);
    while (jr_member(j, &key))
        if (jr_key_is(key, "text") || jr_key_is(key, "content"))
            answer_read_string(j, ret);
        else if (jr_key_is(key, "message") && jr_peek(j) == JR_OBJECT)
            answer_read_choice(j, ret);
        else
            (void)jr_skip(j, NULL);
}

static void answer_read_choices(struct jr *j, struct str *ret)
{
    bool first = true;

    (void)jr_array(j);
    for (; jr_item(j); first = false)
        if (first)
            answer_read_choice(j, ret);
        else
            (void)jr_skip(j, NULL);
}

enum llm_answer llm_read_answer(struct str body, double *ret, char why[LLM_REASON_BYTES])
{
    BUF_AUTO(text, TEXT_MAX);
    struct str raw = {0}, key;
    char line[80];
    struct jr j;

    jr_init(&j, body, JR_LENIENT_UTF8);
    (void)jr_object(&j);
    while (jr_member(&j, &key))
        if (jr_key_is(key, "choices"))
            answer_read_choices(&j, &raw);
        else
            (void)jr_skip(&j, NULL);
    if (!jr_end(&j))
        (void)snprintf(why, LLM_REASON_BYTES, "the answer is not valid: %s at byte %zu", j.error, j.error_at);
    else if (!raw.p)
        (void)snprintf(why, LLM_REASON_BYTES,
                       "the answer has neither choices[0].text nor choices[0].message.content");
    else if (text_put_unescaped(&text, raw) < 0)
        (void)snprintf(why, LLM_REASON_BYTES, "the answer's text is too long");
    else if (!llm_find_number(buf_str(&text), ret)) {
        text_line(line, sizeof(line), buf_str(&text));
        (void)snprintf(why, LLM_REASON_BYTES, "the answer has no number: \"%s\"", line);
        return LLM_NO_NUMBER;
    } else
        return LLM_NUMBER;
    return LLM_INVALID;
}

/* ---- The number ---- */

static size_t digits_at(struct str s, size_t i)
{
    size_t n = 0;

    while (i + n < s.n && isdigit((unsigned char)s.p[i + n]))
        n++;
    return n;
}

/* Copies the word without its thousands separators, which must leave groups of three digits, and with "-" for
 * U+2212, which models write for a minus. False if it is too long or its commas separate something else. */
static bool number_copy(struct str word, char out[NUMBER_MAX + 1])
{
    static const struct str minus = STR("\xe2\x88\x92");
    size_t digits = 0, n = 0, i = 0;

    if (str_starts(word, minus)) {
        out[n++] = '-';
        i = minus.n;
    }
    for (; i < word.n; i++) {
        if (word.p[i] == ',') {
            if (digits == 0 || digits > 3 || digits_at(word, i + 1) != 3)
                return false;
            digits = 0;
            continue;
        }
        if (n == NUMBER_MAX)
            return false;
        digits = isdigit((unsigned char)word.p[i]) ? digits + 1 : 0;
        out[n++] = word.p[i];
    }
    out[n] = '\0';
    return true;
}

/* "1." that begins a line and has text behind it. */
static bool number_is_ordinal(struct str text, struct str word)
{
    const char *end = text.p + text.n, *p = word.p + word.n, *line = word.p;
    size_t digits = digits_at(word, 0);

    if (digits == 0 || digits > 2 || word.n != digits + 1 || word.p[digits] != '.')
        return false;
    while (line > text.p && (line[-1] == ' ' || line[-1] == '\t'))
        line--;
    while (p < end && (*p == ' ' || *p == '\t'))
        p++;
    return (line == text.p || line[-1] == '\n') && p < end && *p != '\n';
}

static bool number_read(struct str text, struct str word, double *ret)
{
    const char *colon = word.n && isalpha((unsigned char)word.p[0]) ? memchr(word.p, ':', word.n) : NULL;
    char copy[NUMBER_MAX + 1], *end;

    if (number_is_ordinal(text, word))
        return false;
    if (colon) /* "value:0.83"; a time has digits only */
        word = (struct str){colon + 1, word.n - (size_t)(colon + 1 - word.p)};
    while (word.n && strchr(".,;:!?%_", word.p[word.n - 1]))
        word.n--;
    while (word.n && strchr(",;:!?_#", word.p[0])) {
        word.p++;
        word.n--;
    }
    if (!word.n || !number_copy(word, copy) || copy[strspn(copy, "+-.0123456789eE")] != '\0')
        return false;
    *ret = strtod(copy, &end);
    return end != copy && *end == '\0' && isfinite(*ret);
}

bool llm_find_number(struct str text, double *ret)
{
    size_t n;

    for (size_t at = 0; at < text.n; at += n + 1) {
        for (n = 0; at + n < text.n; n++)
            if (isspace((unsigned char)text.p[at + n]) ||
                (text.p[at + n] && strchr("=\"'`(){}[]<>|*~$", text.p[at + n])))
                break;
        if (n && number_read(text, (struct str){text.p + at, n}, ret))
            return true;
    }
    return false;
}
