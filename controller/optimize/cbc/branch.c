#include "controller/optimize/cbc/branch.h"

#include "controller/optimize/problem.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum {
    BRANCH_STEPS = 40, /* of prices, in each branch */
    BRANCH_LEAF_STEPS = 400,
    BRANCH_NODES_MAX = 50000,
};

struct branch_setting {
    double share;
    bool is_closed;
};

/* What a branch leaves open, and the best prices for it. */
struct branch_node {
    double bound;
    uint32_t number;  /* older nodes come first at equal bound */
    uint32_t n_tries; /* of a node with all settings decided */
    struct branch_setting *settings;
    double prices[];
};

struct branch_search {
    struct price *x;
    int64_t *objective;
    mono_ms until;
    const struct branch_hooks *hooks;
    struct branch_node **heap; /* what is next comes first */
    size_t n, cap;
    uint32_t n_made;
};

/* ---- Nodes ---- */

/* What was hard waits until all else is done: with a better solution it may be easier. */
static bool branch_is_before(const struct branch_node *a, const struct branch_node *b)
{
    if (a->n_tries != b->n_tries && (a->n_tries > 1 || b->n_tries > 1))
        return a->n_tries < b->n_tries;
    return a->bound > b->bound || (a->bound == b->bound && a->number < b->number);
}

static int branch_push(struct branch_search *b, struct branch_node *node)
{
    size_t i = b->n;

    if (b->n == b->cap) {
        size_t cap = b->cap * 2 + 64;
        struct branch_node **larger = realloc(b->heap, cap * sizeof(*larger));

        if (!larger)
            return -ENOMEM;
        b->heap = larger;
        b->cap = cap;
    }
    for (b->n++; i > 0 && branch_is_before(node, b->heap[(i - 1) / 2]); i = (i - 1) / 2)
        b->heap[i] = b->heap[(i - 1) / 2];
    b->heap[i] = node;
    return 0;
}

static struct branch_node *branch_pop(struct branch_search *b)
{
    struct branch_node *top = b->heap[0], *last = b->heap[--b->n];
    size_t i = 0;

    for (size_t k = 1; k < b->n; k = 2 * i + 1) {
        if (k + 1 < b->n && branch_is_before(b->heap[k + 1], b->heap[k]))
            k++;
        if (!branch_is_before(b->heap[k], last))
            break;
        b->heap[i] = b->heap[k];
        i = k;
    }
    b->heap[i] = last;
    return top;
}

/* What is open now. */
static struct branch_node *branch_node_new(struct branch_search *b)
{
    const struct price *x = b->x;
    size_t n = price_count_prices(x);
    struct branch_node *node =
        malloc(sizeof *node + n * sizeof *node->prices + x->p->n_settings * sizeof *node->settings);

    if (!node)
        return NULL;
    node->bound = x->bound;
    node->number = b->n_made++;
    node->n_tries = 0;
    node->settings = (struct branch_setting *)(node->prices + n);
    price_get(x, node->prices);
    for (size_t i = 0; i < x->p->n_settings; i++)
        node->settings[i] = (struct branch_setting){x->settings[i].share, x->settings[i].is_closed};
    return node;
}

static void branch_restore(struct price *x, const struct branch_node *node)
{
    price_set(x, node->prices);
    for (size_t i = 0; i < x->p->n_settings; i++) {
        x->settings[i].share = node->settings[i].share;
        x->settings[i].is_closed = node->settings[i].is_closed;
    }
}

/* ---- Branching ---- */

/* The open setting that is least decided; NO_SETTING: each site has one at most. */
static uint32_t branch_choose(const struct price *x)
{
    const struct problem *p = x->p;
    uint32_t chosen = NO_SETTING;
    double least = INFINITY;

    for (uint32_t site = 0; site < p->n_sites; site++) {
        size_t n_open = 0;

        for (uint32_t i = p->first_setting[site]; i < p->first_setting[site + 1]; i++)
            n_open += !x->settings[i].is_closed;
        for (uint32_t i = p->first_setting[site]; i < p->first_setting[site + 1] && n_open > 1; i++) {
            double distance = fabs(x->settings[i].share - 0.5);

            if (x->settings[i].is_closed || distance >= least)
                continue;
            least = distance;
            chosen = i;
        }
    }
    return chosen;
}

/* Closes settings that no solution better than the objective has. */
static void branch_close(struct price *x, int64_t objective)
{
    for (size_t i = 0; i < x->p->n_settings && objective > INT64_MIN; i++) {
        struct price_setting *s = &x->settings[i];

        if (x->bound - x->site_value[s->site] + s->value < (double)objective + 1 - 1e-6)
            s->is_closed = true;
    }
}

static int branch_look(void *arg, int64_t *objective)
{
    (void)arg;
    (void)objective;
    return 0;
}

/* Bounds what is open now, and keeps it if it may have a better solution. */
static int branch_add(struct branch_search *b)
{
    struct price *x = b->x;
    struct branch_node *node;
    int r;

    x->length = 0.2;
    r = price_lower(x, b->objective, BRANCH_STEPS, b->until, branch_look, NULL);
    if (r < 0 || price_bound(x) <= *b->objective)
        return r;
    branch_close(x, *b->objective);
    node = branch_node_new(b);
    r = node ? branch_push(b, node) : -ENOMEM;
    if (r < 0) {
        free(node);
        return r;
    }
    return b->hooks->look(b->hooks->arg, b->objective);
}

static void branch_open_only(struct price *x, uint32_t setting)
{
    uint32_t site = x->settings[setting].site;

    for (uint32_t i = x->p->first_setting[site]; i < x->p->first_setting[site + 1]; i++)
        x->settings[i].is_closed = i != setting;
}

/* Objectives are whole numbers; sums of prices are not exact. */
static int64_t branch_whole(double bound)
{
    return (int64_t)floor(bound + 1e-6);
}

/* All settings are decided. What is not solved yet is tried again later. */
static int branch_solve(struct branch_search *b, struct branch_node **node)
{
    struct branch_node *n = *node;
    int64_t bound;
    int r = 0;

    if (n->n_tries == 0) {
        b->x->length = 0.5;
        r = price_lower(b->x, b->objective, BRANCH_LEAF_STEPS, b->until, branch_look, NULL);
        price_get(b->x, n->prices);
    } else {
        price_evaluate(b->x);
    }
    bound = branch_whole(fmin(b->x->bound, n->bound));
    if (r == 0 && bound > *b->objective)
        r = b->hooks->leaf(b->hooks->arg, b->objective, &bound, n->n_tries++);
    if (r < 0 || bound <= *b->objective)
        return r;
    n->bound = (double)bound;
    return branch_push(b, TAKE_PTR(*node));
}

static int branch_split(struct branch_search *b, struct branch_node **node)
{
    uint32_t chosen;
    int r;

    branch_restore(b->x, *node);
    chosen = branch_choose(b->x);
    if (chosen == NO_SETTING)
        return branch_solve(b, node);
    branch_open_only(b->x, chosen);
    r = branch_add(b);
    if (r == 0) {
        branch_restore(b->x, *node);
        b->x->settings[chosen].is_closed = true;
        r = branch_add(b);
    }
    return r;
}

/* The bound of all branches; `open` is that of one that is not in the heap. */
static int branch_tell(const struct branch_search *b, double open)
{
    int64_t bound;

    for (size_t i = 0; i < b->n; i++)
        open = fmax(open, b->heap[i]->bound);
    bound = branch_whole(open);
    return b->hooks->bound(b->hooks->arg, bound > *b->objective ? bound : *b->objective);
}

static int branch_next(struct branch_search *b)
{
    struct branch_node *node = branch_pop(b);
    int r = branch_tell(b, node->bound);

    if (r == 0 && branch_whole(node->bound) > *b->objective)
        r = branch_split(b, &node);
    free(node);
    return r;
}

static void branch_done(struct branch_search *b)
{
    for (size_t i = 0; i < b->n; i++)
        free(b->heap[i]);
    free(b->heap);
}

int branch(struct price *x, int64_t *objective, mono_ms until, const struct branch_hooks *hooks)
{
    struct branch_search b = {.x = x, .objective = objective, .until = until, .hooks = hooks};
    CLEANUP(cleanup_free) struct branch_node *root = branch_node_new(&b);
    int r = root ? branch_add(&b) : -ENOMEM;

    while (r == 0 && b.n > 0 && b.heap[0]->n_tries < BRANCH_TRIES && b.n_made < BRANCH_NODES_MAX &&
           mono_before(clock_system.mono(&clock_system), until))
        r = branch_next(&b);
    if (r == 0)
        r = branch_tell(&b, (double)*objective);
    branch_done(&b);
    if (root) {
        branch_restore(x, root);
        price_evaluate(x);
    }
    return r;
}
