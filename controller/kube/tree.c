/* Owns one tree while it grows. A container is in its parent from its beginning, so that the root owns
 * all. */
#include "controller/kube/tree.h"

#include "controller/kube/cut.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/escape.h"
#include "exporter/base/invariant.h"
#include "exporter/num/num.h"

#include <errno.h>
#include <stdio.h>

/* What making, and later freeing, a value costs beside reading its bytes: test/bench/bench_turn.c. */
enum { NODE_COST = 32, INTEGER_CHARS = 20 };

void kube_tree_done(struct kube_tree *t)
{
    json_decref(t->root);
    buf_done(&t->less);
    buf_done(&t->plain);
    free(t->open);
    *t = (struct kube_tree){0};
}

void kube_tree_begin(struct kube_tree *t, struct str text, struct kube_cut *cut)
{
    json_decref(t->root);
    t->root = NULL;
    t->n_open = 0;
    t->state = KUBE_TREE_MORE;
    buf_clear(&t->less);
    t->less.max = t->plain.max = SIZE_MAX / 2;
    t->is_too_large = text.n > KUBE_TREE_MAX_BYTES;
    if (t->is_too_large) {
        t->state = KUBE_TREE_FAILED;
        return;
    }
    if (cut && kube_cut(cut, text, &t->less) == 0)
        text = buf_str(&t->less);
    jr_init(&t->in, text, JR_DEEP);
}

static void tree_fail(struct kube_tree *t, const char *why)
{
    (void)jr_fail(&t->in, why);
    t->state = KUBE_TREE_FAILED;
}

static void tree_enter(struct kube_tree *t, json_t *container)
{
    if (t->n_open == t->cap) {
        t->cap = size_max(16, 2 * t->cap);
        t->open = xreallocarray(t->open, t->cap, sizeof(json_t *));
    }
    t->open[t->n_open++] = container;
}

/* Replaces the raw string by the one without escapes, which may be in t->plain until the next call. False
 * without memory. */
static bool tree_unescape(struct kube_tree *t, struct str *s)
{
    char *room;

    if (!memchr(s->p, '\\', s->n))
        return true;
    buf_clear(&t->plain);
    if (buf_reserve(&t->plain, s->n * 3, &room) < 0)
        return false;
    t->plain.n = jr_unescape(*s, room);
    *s = buf_str(&t->plain);
    return true;
}

static bool is_integer(struct str number)
{
    for (size_t i = 0; i < number.n; i++)
        if (number.p[i] == '.' || (number.p[i] | 0x20) == 'e')
            return false;
    return true;
}

/* NULL if it fits neither type. */
static json_t *tree_number(struct str number)
{
    char text[INTEGER_CHARS + 1];
    double real;
    long long integer;

    if (!is_integer(number))
        return num_parse(number, &real) == NUM_OK ? json_real(real) : NULL;
    if (number.n > INTEGER_CHARS) /* it has no leading zeros */
        return NULL;
    memcpy(text, number.p, number.n);
    text[number.n] = '\0';
    errno = 0;
    integer = strtoll(text, NULL, 10);
    return errno == 0 ? json_integer(integer) : NULL;
}

/* The next value, of which an object or an array is still empty. NULL on error. */
static json_t *tree_value(struct kube_tree *t)
{
    struct str text;

    switch (jr_peek(&t->in)) {
    case JR_OBJECT:
        return jr_object(&t->in) ? json_object() : NULL;
    case JR_ARRAY:
        return jr_array(&t->in) ? json_array() : NULL;
    case JR_STRING:
        if (!jr_string(&t->in, &text) || !tree_unescape(t, &text))
            return NULL;
        return json_stringn_nocheck(text.p, text.n);
    case JR_NUMBER:
        return jr_number(&t->in, &text) ? tree_number(text) : NULL;
    case JR_TRUE:
        return jr_skip(&t->in, NULL) ? json_true() : NULL;
    case JR_FALSE:
        return jr_skip(&t->in, NULL) ? json_false() : NULL;
    case JR_NULL:
        return jr_skip(&t->in, NULL) ? json_null() : NULL;
    case JR_NONE:
    case JR_NONFINITE:
        break;
    }
    return NULL;
}

static void tree_read_root(struct kube_tree *t)
{
    enum jr_type type = jr_peek(&t->in);

    if (type == JR_OBJECT || type == JR_ARRAY)
        t->root = tree_value(t);
    if (t->root)
        tree_enter(t, t->root);
    else
        tree_fail(t, "expected an object or an array");
}

/* The innermost container ends, or the text is wrong. */
static void tree_leave(struct kube_tree *t)
{
    if (t->in.error) {
        t->state = KUBE_TREE_FAILED;
        return;
    }
    t->n_open--;
    if (t->n_open == 0)
        t->state = jr_end(&t->in) ? KUBE_TREE_DONE : KUBE_TREE_FAILED;
}

/* r: what jansson returned for it. */
static void tree_has_added(struct kube_tree *t, json_t *value, int r)
{
    invariant(r == 0);
    if (json_is_object(value) || json_is_array(value))
        tree_enter(t, value);
}

static void tree_read_member(struct kube_tree *t, json_t *object)
{
    struct str name;
    json_t *value;
    int r;

    if (!jr_member(&t->in, &name)) {
        tree_leave(t);
        return;
    }
    value = tree_value(t);
    if (!value) {
        tree_fail(t, "not a value");
        return;
    }
    /* After the value, which by now needs t->plain no longer. jansson takes no NUL in a name. */
    if (!tree_unescape(t, &name) || memchr(name.p, '\0', name.n)) {
        json_decref(value);
        tree_fail(t, "not a name");
        return;
    }
    r = json_object_setn_new_nocheck(object, name.p, name.n, value);
    tree_has_added(t, value, r);
}

static void tree_read_item(struct kube_tree *t, json_t *array)
{
    json_t *value;
    int r;

    if (!jr_item(&t->in)) {
        tree_leave(t);
        return;
    }
    value = tree_value(t);
    if (!value) {
        tree_fail(t, "not a value");
        return;
    }
    r = json_array_append_new(array, value);
    tree_has_added(t, value, r);
}

static void tree_read_value(struct kube_tree *t)
{
    json_t *innermost;

    if (!t->root) {
        tree_read_root(t);
        return;
    }
    invariant(t->n_open > 0);
    innermost = t->open[t->n_open - 1];
    if (json_is_object(innermost))
        tree_read_member(t, innermost);
    else
        tree_read_item(t, innermost);
}

size_t kube_tree_step(struct kube_tree *t, size_t most)
{
    const char *begin = t->in.p;
    size_t nodes = 0, cost = 0;

    while (t->state == KUBE_TREE_MORE && cost < most) {
        tree_read_value(t);
        nodes++;
        cost = nodes * NODE_COST + (size_t)(t->in.p - begin);
    }
    return cost;
}

json_t *kube_tree_take(struct kube_tree *t)
{
    invariant(t->state == KUBE_TREE_DONE && t->n_open == 0);
    return TAKE_PTR(t->root);
}

void kube_tree_explain(const struct kube_tree *t, char why[256])
{
    struct str text = {t->in.begin, (size_t)(t->in.end - t->in.begin)};
    unsigned line, column;

    invariant(t->state == KUBE_TREE_FAILED);
    if (t->is_too_large) {
        (void)snprintf(why, 256, "larger than %d MiB", KUBE_TREE_MAX_BYTES >> 20);
        return;
    }
    jr_position(text, t->in.error_at, &line, &column);
    /* Without a word of the document, which may contain secrets. */
    (void)snprintf(why, 256, "not JSON at line %u, column %u", line, column);
}
