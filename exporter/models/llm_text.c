#include "exporter/models/llm_text.h"

#include "exporter/base/json.h"
#include "exporter/base/text.h"
#include "exporter/num/num.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <pcre2.h>
#include <stdio.h>

enum { NUMBER_MAX = 64 };

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

    while (p && placeholder_at(p) < PLACEHOLDERS)
        p = strstr(p + 2, "${");
    if (!p && strstr(template, placeholders[VALUES]))
        return 0;
    *ret_why = p ? xasprintf("line %d: unknown placeholder \"%.*s\"; known are ${values}, ${labels}, "
                             "${app_name}, ${timeseries_kind} and ${tendency}",
                             template_line(template, p), (int)strcspn(p, "} \n") + 1, p)
                 : xstrdup("it has no ${values}, so that every series would have the same answer");
    return -EINVAL;
}

static int prompt_put_number(struct buf *into, double v)
{
    char text[NUM_MAX];

    return buf_put(into, text, num_put_double(text, v));
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
    char *room;
    int r;

    switch (which) {
    case VALUES:
        return prompt_put_values(into, s);
    case LABELS:
        return buf_put_str(into, s->metric);
    case APP_NAME:
        if (!series_label(s->metric, "pod", &name) && !series_label(s->metric, "namespace", &name))
            return buf_puts(into, "unknown");
        r = buf_room(into, name.n * 3, &room);
        into->n += r == 0 ? jr_unescape(name, room) : 0;
        return r;
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

enum llm_answer llm_read_answer(struct str body, double *ret, char why[LLM_REASON_BYTES])
{
    json_error_t e;
    json_t *root = json_loadb(body.p ? body.p : "", body.n, 0, &e);
    const json_t *choice = json_array_get(json_object_get(root, "choices"), 0);
    const json_t *text =
        json_object_get(choice, "text") ?: json_object_get(json_object_get(choice, "message"), "content");
    struct str said = {json_string_value(text), json_string_length(text)};
    enum llm_answer result = LLM_INVALID;
    char line[80];

    if (!root) {
        (void)snprintf(why, LLM_REASON_BYTES, "the answer is not valid: %s", e.text);
    } else if (!said.p) {
        (void)snprintf(why, LLM_REASON_BYTES,
                       "the answer has neither choices[0].text nor choices[0].message.content");
    } else if (!llm_find_number(said, ret)) {
        result = LLM_NO_NUMBER;
        text_line(line, sizeof(line), said);
        (void)snprintf(why, LLM_REASON_BYTES, "the answer has no number: \"%s\"", line);
    } else {
        result = LLM_NUMBER;
    }
    json_decref(root);
    return result;
}

/* ---- The number ---- */

/* A word that is a number: behind a label ("value:0.83"), within punctuation, with separators of thousands,
 * and with U+2212 for a minus. The first alternative passes over "1." that begins a line and has text behind
 * it. */
#define BREAK "[\\s=\"'`(){}\\[\\]<>|*~$]"
static const char number_pattern[] = "^[ \\t]*\\d{1,2}\\.(?=" BREAK ")[ \\t]*(?!\\n|\\z)(*SKIP)(*FAIL)"
                                     "|(?:(?<=" BREAK ")|\\A)"
                                     "(?:[A-Za-z](?:(?!" BREAK ")[^:])*:)?[,;:!?_#]*"
                                     "((?:[+-]|\xe2\x88\x92)?"
                                     "(?:(?:\\d{1,3}(?:,\\d{3})+|\\d+)(?:\\.\\d*)?|\\.\\d+)"
                                     "(?:[eE][+-]?\\d+)?)"
                                     "[.,;:!?%_]*(?=" BREAK "|\\z)";

/* The text of the pattern's group as strtod() reads it. */
static bool number_read(struct str word, double *ret)
{
    static const struct str minus = STR("\xe2\x88\x92");
    char copy[NUMBER_MAX + 1];
    size_t n = 0, i = 0;

    if (word.n > NUMBER_MAX)
        return false;
    if (str_starts(word, minus)) {
        copy[n++] = '-';
        i = minus.n;
    }
    for (; i < word.n; i++)
        if (word.p[i] != ',')
            copy[n++] = word.p[i];
    copy[n] = '\0';
    *ret = strtod(copy, NULL);
    return isfinite(*ret);
}

bool llm_find_number(struct str text, double *ret)
{
    int error;
    PCRE2_SIZE at;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)number_pattern, PCRE2_ZERO_TERMINATED, PCRE2_MULTILINE, &error, &at, NULL);
    pcre2_match_data *match = pcre2_match_data_create_from_pattern(code, NULL);
    const PCRE2_SIZE *found = pcre2_get_ovector_pointer(match);
    bool ok = false;

    for (at = 0; !ok && pcre2_match(code, (PCRE2_SPTR)text.p, text.n, at, 0, match, NULL) > 0; at = found[3])
        ok = number_read((struct str){text.p + found[2], found[3] - found[2]}, ret);
    pcre2_match_data_free(match);
    pcre2_code_free(code);
    return ok;
}
