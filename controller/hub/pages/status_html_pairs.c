/* Scorers on clusters, in tables: those that do not score first. */
#include "controller/hub/pages/status_view.h"

#include <errno.h>

enum { ROWS_MOST = 1000 };

const struct view_look view_looks[PAIR_STATES] = {
    [PAIR_NOT_WRITTEN] = {"!", "failing", "not written"},
    [PAIR_NOT_APPLIED] = {"!", "failing", "not applied"},
    [PAIR_REFUSED] = {"!", "failing", "refused"},
    [PAIR_FAILING] = {"✗", "failing", "failing"},
    [PAIR_STALE] = {"✗", "failing", "stale"},
    [PAIR_NOT_PLACED] = {"✗", "failing", "no placement score"},
    [PAIR_UNAVAILABLE] = {"?", "empty", "not available"},
    [PAIR_EXPIRED] = {"?", "empty", "too old"},
    [PAIR_REPORT_FULL] = {"?", "empty", "not in the report"},
    [PAIR_NO_REPORT] = {"?", "waiting", "no report"},
    [PAIR_BEHIND] = {"↻", "empty", "behind"},
    [PAIR_WAITING] = {"…", "waiting", "waiting"},
    [PAIR_NO_ROOM] = {"□", "failing", "no room"},
    [PAIR_MASKED] = {"–", "none", "masked"},
    [PAIR_NOT_SENT] = {"–", "none", "not sent"},
    [PAIR_OLD_CONFIG] = {"✓", "empty", "outdated"},
    [PAIR_EMPTY] = {"✓", "ok", "nothing to score"},
    [PAIR_OK] = {"✓", "ok", "scores"},
};

static void put_row(struct out *o, const struct view *v, const struct hub_scorer *s,
                    const struct hub_cluster *c, bool of_scorer)
{
    char behind[STATUS_WORD];
    struct view_pair pair;

    view_pair_of(&pair, s, c);
    html(o, "<tr><td class=\"is\">");
    html_badge(o, view_looks[pair.cell].class, view_looks[pair.cell].word);
    html(o, "</td><th scope=\"row\">");
    view_html_link(o, of_scorer ? VIEW_CLUSTER : VIEW_SCORER, of_scorer ? c->name : s->name);
    html(o, "</th><td class=\"wide\">");
    if (*pair.why)
        html(o, "<p><bdi>%s</bdi></p>", pair.why);
    if (of_scorer && c->behind) {
        status_duration(view_behind_ms(v, c), behind);
        html(o, "<p class=\"soft\">behind for %s</p>", behind);
    }
    html(o, "</td></tr>\n");
}

/* As many as the status names are counted already. */
static size_t count_troubled(const struct view *v, const struct hub_scorer *s)
{
    size_t n = 0;

    if (s->tally.n_named < HUB_NAMED_CLUSTERS)
        return s->tally.n_named;
    for (size_t i = 0; i < v->n_clusters; i++)
        n += view_pair_troubled(s, v->clusters[i]);
    return size_max(n, s->tally.n_named);
}

void view_html_failing(struct out *o, const struct view *v, const struct view_scorer *s)
{
    const struct tally *t = &s->s->tally;
    size_t n = count_troubled(v, s->s);

    if (n == 0)
        return;
    html(o, "<div class=\"scorers troubles more\"><table><caption>Trouble on %zu %s", n,
         n == 1 ? "cluster" : "clusters");
    if (n > t->n_named) {
        html(o, ", the first %zu; <a href=\"", t->n_named);
        view_put_url(o, VIEW_SCORER, s->s->name);
        html(o, "\">all of them</a>");
    }
    html(o, "</caption><thead class=\"unseen\"><tr><th scope=\"col\">State</th><th "
            "scope=\"col\">Cluster</th><th scope=\"col\">Error</th></tr></thead><tbody>\n");
    for (size_t i = 0; i < t->n_named; i++)
        put_row(o, v, s->s, t->named[i].cluster, true);
    html(o, "</tbody></table></div>\n");
}

/* ---- All of one scorer, or of one cluster ---- */

struct row {
    const struct hub_scorer *scorer;
    const struct hub_cluster *cluster;
    enum pair_state cell;
};

struct rows {
    struct row *list;
    size_t n, by_cell[PAIR_STATES];
};

static void rows_done(struct rows *r)
{
    free(r->list);
}

static int rows_new(struct rows *ret, size_t most)
{
    ret->list = calloc(most + 1, sizeof(struct row));
    return ret->list ? 0 : -ENOMEM;
}

static void add(struct rows *r, const struct hub_scorer *s, const struct hub_cluster *c)
{
    struct view_pair pair;

    view_pair_of(&pair, s, c);
    r->by_cell[pair.cell]++;
    if (pair.cell != PAIR_NOT_SENT)
        r->list[r->n++] = (struct row){s, c, pair.cell};
}

static int by_cell(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int names = strcmp(x->cluster->name, y->cluster->name);

    if (x->cell != y->cell)
        return x->cell < y->cell ? -1 : 1;
    return names ? names : strcmp(x->scorer->name, y->scorer->name);
}

static void tiles(struct out *o, const char *what, const struct rows *r)
{
    html(o, "<dl class=\"tiles many\">\n");
    html_tile(o, what, "all", r->n);
    html_tile(o, view_looks[PAIR_OK].word, view_looks[PAIR_OK].class, r->by_cell[PAIR_OK]);
    for (size_t i = 0; i < PAIR_OK; i++)
        if (r->by_cell[i] && i != PAIR_NOT_SENT)
            html_tile(o, view_looks[i].word, view_looks[i].class, r->by_cell[i]);
    html(o, "</dl>\n");
}

static void table(struct out *o, const struct view *v, struct rows *r, bool of_scorer, const char *name)
{
    qsort(r->list, r->n, sizeof(r->list[0]), by_cell);
    html(o,
         "<div class=\"card scorers troubles\"><table><caption class=\"unseen\">%s, those that do not score "
         "first</caption><thead><tr><th scope=\"col\">State</th><th scope=\"col\">%s</th><th "
         "scope=\"col\">Error</th></tr></thead><tbody>\n",
         of_scorer ? "Clusters" : "Scorers", of_scorer ? "Cluster" : "Scorer");
    for (size_t i = 0; i < size_min(r->n, ROWS_MOST); i++)
        put_row(o, v, r->list[i].scorer, r->list[i].cluster, of_scorer);
    html(o, "</tbody></table>\n");
    if (r->n > ROWS_MOST) {
        html(o, "<p class=\"soft more\">and ");
        html_count(o, r->n - ROWS_MOST);
        html(o, " more, not shown here: <a href=\"");
        view_put_url(o, of_scorer ? "/api/v1" VIEW_SCORER : "/api/v1" VIEW_CLUSTER, name);
        html(o, "\">the JSON</a> has all</p>\n");
    }
    html(o, "</div>\n");
}

void view_html_scorer_pairs(struct out *o, const struct view *v, const struct view_scorer *s)
{
    CLEANUP(rows_done) struct rows r = {0};

    if (o->error == 0)
        o->error = rows_new(&r, v->n_clusters);
    if (o->error)
        return;
    for (size_t i = 0; i < v->n_clusters; i++)
        add(&r, s->s, v->clusters[i]);
    html(o, "<h2 id=\"clusters\">Clusters</h2>\n");
    if (r.n == 0) {
        html(o, "<div class=\"card\"><p>It is sent to no cluster now: the condition Distributed says "
                "why.</p></div>\n");
        return;
    }
    tiles(o, "clusters", &r);
    table(o, v, &r, true, s->s->name);
}

void view_html_cluster_pairs(struct out *o, const struct view *v, const struct hub_cluster *c)
{
    CLEANUP(rows_done) struct rows r = {0};

    if (o->error == 0)
        o->error = rows_new(&r, v->n_scorers);
    if (o->error)
        return;
    for (size_t i = 0; i < v->n_scorers; i++)
        add(&r, v->scorers[i].s, c);
    html(o, "<h2 id=\"scorers\">Scorers</h2>\n");
    if (r.n) {
        tiles(o, "scorers", &r);
        table(o, v, &r, false, c->name);
    }
    if (!c->managed)
        html(o, "<div class=\"card\"><p>It gets none: the hub has not accepted it, or it is being "
                "deleted.</p></div>\n");
    else if (r.by_cell[PAIR_NOT_SENT])
        html(o,
             "<div class=\"card\"><p>Not sent here now: %zu of <a href=\"/\">all scorers</a>; the condition "
             "Distributed of each says why.</p></div>\n",
             r.by_cell[PAIR_NOT_SENT]);
    else if (r.n == 0)
        html(o, "<div class=\"card\"><p>There are no scorers yet.</p></div>\n");
}
