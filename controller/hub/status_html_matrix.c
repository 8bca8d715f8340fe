/* Scorers × clusters: a small cell for each pair, while there are few enough of them for eyes. */
#include "controller/hub/status_view.h"

enum { MATRIX_CLUSTERS = 50, MATRIX_SCORERS = 30 };

static const struct look {
    const char *sign, *class, *words;
} looks[CELLS] = {
    [CELL_OK] = {"✓", "ok", "scores"},
    [CELL_FAILING] = {"✗", "failing", "fails"},
    [CELL_WAITING] = {"…", "waiting", "waits for its first round"},
    [CELL_SILENT] = {"?", "waiting", "no report"},
    [CELL_BEHIND] = {"↻", "empty", "behind"},
    [CELL_REFUSED] = {"!", "failing", "cannot be written"},
    [CELL_NO_ROOM] = {"□", "failing", "no room"},
    [CELL_NONE] = {"–", "none", "not sent there"},
};

static void legend(struct out *o, const bool seen[CELLS])
{
    html(o, "<p class=\"legend\">");
    for (size_t i = 0; i < CELLS; i++)
        if (seen[i])
            html(o, "<span><b class=\"cell %s\">%s</b> %s</span> ", looks[i].class, looks[i].sign,
                 looks[i].words);
    html(o, "</p>\n");
}

static void pair(struct out *o, const struct view *v, const struct hub_cluster *c, size_t i, bool seen[CELLS])
{
    const struct report_cell *report;
    enum view_cell cell = view_cell(v, c, &v->scorers[i], &report);
    const struct look *look = &looks[cell];
    const char *error = cell == CELL_FAILING || cell == CELL_REFUSED ? view_cell_error(c, report) : "";

    seen[cell] = true;
    html(o, "<td><b class=\"cell %s\" title=\"%s: ", look->class, v->scorers[i].s->name);
    html(o, "%s%s%s\">%s</b></td>", look->words, *error ? ": " : "", error, look->sign);
}

static void column_heads(struct out *o, const struct view *v)
{
    html(o, "<thead><tr><th scope=\"col\"><span class=\"unseen\">Cluster</span></th>");
    for (size_t i = 0; i < v->n_scorers; i++)
        html(o, "<th scope=\"col\"><a href=\"#s%zu\" title=\"%s\"><bdi>%s</bdi></a></th>", i,
             v->scorers[i].s->name, v->scorers[i].s->name);
    html(o, "</tr></thead>");
}

bool view_matrix_fits(const struct view *v)
{
    return v->n_scorers > 0 && v->n_scorers <= MATRIX_SCORERS && v->h->totals.managed > 0 &&
           v->h->totals.managed <= MATRIX_CLUSTERS;
}

void view_html_matrix(struct out *o, const struct view *v)
{
    bool seen[CELLS] = {false};

    html(o, "<section class=\"card matrix\" aria-label=\"Scorers × clusters\"><div class=\"scroll\" "
            "tabindex=\"0\"><table><caption class=\"unseen\">What each scorer does on each "
            "cluster</caption>");
    column_heads(o, v);
    html(o, "<tbody>\n");
    for (size_t k = 0; k < v->n_clusters; k++) {
        if (!v->clusters[k]->managed)
            continue;
        html(o, "<tr><th scope=\"row\"><bdi title=\"%s\">%s</bdi></th>", v->clusters[k]->name,
             v->clusters[k]->name);
        for (size_t i = 0; i < v->n_scorers; i++)
            pair(o, v, v->clusters[k], i, seen);
        html(o, "</tr>\n");
    }
    html(o, "</tbody></table></div>\n");
    legend(o, seen);
    html(o, "</section>\n");
}
