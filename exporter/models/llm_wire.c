#include "exporter/models/llm_wire.h"

#include "exporter/base/json.h"
#include "exporter/num/num.h"

#include <stdio.h>

bool llm_is_chat(const char *endpoint)
{
    static const struct str path = {"/chat/completions", sizeof("/chat/completions") - 1};
    size_t n = strcspn(endpoint, "?#");

    while (n && endpoint[n - 1] == '/')
        n--;
    return n >= path.n && memcmp(endpoint + n - path.n, path.p, path.n) == 0;
}

static int wire_put_number(struct buf *into, double v)
{
    char text[NUM_MAX];

    return buf_put(into, text, num_put_double(text, v));
}

int llm_put_request(struct buf *into, const struct llm_settings *s, bool chat, struct str prompt)
{
    return buf_puts(into, "{\"model\":")
               ?: buf_put_json(into, str_of(s->model))
               ?: buf_puts(into, chat ? ",\"messages\":[{\"role\":\"user\",\"content\":" : ",\"prompt\":")
               ?: buf_put_json(into, prompt)
               ?: buf_puts(into, chat ? "}],\"temperature\":" : ",\"temperature\":")
               ?: wire_put_number(into, s->temperature)
               ?: buf_printf(into, ",\"max_tokens\":%d}", s->max_tokens);
}

/* The string at the next value goes to *ret; anything else is skipped. */
static void wire_read_string(struct jr *j, struct str *ret)
{
    if (jr_peek(j) == JR_STRING)
        (void)jr_string(j, ret);
    else
        (void)jr_skip(j, NULL);
}

static void wire_read_message(struct jr *j, struct str *ret)
{
    struct str key;

    if (jr_peek(j) != JR_OBJECT) {
        (void)jr_skip(j, NULL);
        return;
    }
    (void)jr_object(j);
    while (jr_member(j, &key))
        if (jr_key_is(key, "content"))
            wire_read_string(j, ret);
        else
            (void)jr_skip(j, NULL);
}

static void wire_read_choice(struct jr *j, struct str *ret)
{
    struct str key;

    (void)jr_object(j);
    while (jr_member(j, &key))
        if (jr_key_is(key, "text"))
            wire_read_string(j, ret);
        else if (jr_key_is(key, "message"))
            wire_read_message(j, ret);
        else
            (void)jr_skip(j, NULL);
}

static void wire_read_choices(struct jr *j, struct str *ret)
{
    bool first = true;

    (void)jr_array(j);
    for (; jr_item(j); first = false)
        if (first)
            wire_read_choice(j, ret);
        else
            (void)jr_skip(j, NULL);
}

static bool wire_put_text(struct buf *into, struct str raw)
{
    char *room;

    if (buf_room(into, raw.n * 3, &room) < 0)
        return false;
    into->n += jr_unescape(raw, room);
    return true;
}

bool llm_read_answer(struct str body, struct buf *into, char why[LLM_REASON_BYTES])
{
    struct str text = {0}, key;
    struct jr j;

    jr_init(&j, body, JR_LENIENT_UTF8);
    (void)jr_object(&j);
    while (jr_member(&j, &key))
        if (jr_key_is(key, "choices"))
            wire_read_choices(&j, &text);
        else
            (void)jr_skip(&j, NULL);
    if (!jr_end(&j))
        (void)snprintf(why, LLM_REASON_BYTES, "the answer is not valid: %s at byte %zu", j.error, j.error_at);
    else if (!text.p)
        (void)snprintf(why, LLM_REASON_BYTES,
                       "the answer has neither choices[0].text nor "
                       "choices[0].message.content");
    else if (!wire_put_text(into, text))
        (void)snprintf(why, LLM_REASON_BYTES, "the answer's text is too long");
    else
        return true;
    return false;
}
