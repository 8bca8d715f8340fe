/* Scorers × clusters: a small cell for each pair, while there are few enough of them for eyes. */
#include "controller/hub/pages/status_view.h"

enum { MATRIX_CLUSTERS = 50, MATRIX_SCORERS = 30 };

static void legend(struct out *o, const bool seen[PAIR_STATES])
{
    html(o, "<p class=\"legend\">");
    for (size_t i = 0; i < PAIR_STATES; i++)
        if (seen[i])
            html(o, "<span><b class=\"cell %s\">%s</b> %s</span> ", view_looks[i].class, view_looks[i].sign,
                 view_looks[i].word);
    html(o, "</p>\n");
}

static void one_pair(struct out *o, const struct hub_cluster *c, const struct hub_scorer *s,
                     bool seen[PAIR_STATES])
{
    struct view_pair pair;
    const struct view_look *look;

    view_pair_of(&pair, s, c);
    look = &view_looks[pair.cell];
    seen[pair.cell] = true;
    html(o, "<td><b class=\"cell %s\" title=\"%s: ", look->class, s->name);
    html(o, "%s%s%s\">%s</b></td>", look->word, *pair.why ? ": " : "", pair.why, look->sign);
}

/* There may be no room for all of the name. */
static void head(struct out *o, const char *scope, const char *path, const char *name)
{
    html(o, "<th scope=\"%s\" title=\"%s\">", scope, name);
    view_html_link(o, path, name);
    html(o, "</th>");
}

static void column_heads(struct out *o, const struct view *v)
{
    html(o, "<thead><tr><th scope=\"col\"><span class=\"unseen\">Cluster</span></th>");
    for (size_t i = 0; i < v->n_scorers; i++)
        head(o, "col", VIEW_SCORER, v->scorers[i].s->name);
    html(o, "</tr></thead>");
}

bool view_matrix_fits(const struct view *v)
{
    return v->n_scorers > 0 && v->n_scorers <= MATRIX_SCORERS && v->h->totals.managed > 0 &&
           v->h->totals.managed <= MATRIX_CLUSTERS;
}

void view_html_matrix(struct out *o, const struct view *v)
{
    bool seen[PAIR_STATES] = {false};

    html(o, "<section class=\"card matrix\" aria-label=\"Scorers × clusters\"><div class=\"scroll\" "
            "tabindex=\"0\"><table><caption class=\"unseen\">What each scorer does on each "
            "cluster</caption>");
    column_heads(o, v);
    html(o, "<tbody>\n");
    for (size_t k = 0; k < v->n_clusters; k++) {
        if (!v->clusters[k]->managed)
            continue;
        html(o, "<tr>");
        head(o, "row", VIEW_CLUSTER, v->clusters[k]->name);
        for (size_t i = 0; i < v->n_scorers; i++)
            one_pair(o, v->clusters[k], v->scorers[i].s, seen);
        html(o, "</tr>\n");
    }
    html(o, "</tbody></table></div>\n");
    legend(o, seen);
    html(o, "</section>\n");
}
