/* One scorer on the hub's page. */
#include "controller/hub/pages/status_view.h"

#include "exporter/base/doc.h"

#include <errno.h>

enum { SUMMARY_BYTES = 1 << 20 };

/* What a part of the probe met, as long as it is not well. */
static void probe_note(struct out *o, const char *what, const struct probe_part *p)
{
    if (!p->asked || p->ok)
        return;
    html(o, "<div class=\"note bad\"><p><b>%s: %s</b>", what, p->reason);
    if (p->failures > 1)
        html(o, ", %zu times in a row", (size_t)p->failures);
    html(o, "</p><pre>%s</pre></div>\n", p->message);
}

static void same_name_note(struct out *o, const struct hub_scorer *s)
{
    const struct hub_scorer *other = s->older ? s->older : s->younger;

    if (!other)
        return;
    html(o, "<div class=\"note%s\"><p><b>Same %s</b> as ", s->older ? " bad" : "",
         hub_scorer_shares_object(s) ? "AddOnPlacementScore" : "score name");
    view_html_link(o, VIEW_SCORER, other->name);
    html(o, ", which is %s</p></div>\n",
         s->older ? "older: this one is in no summary." : "younger, and in no summary.");
}

static void summary_note(struct out *o, const struct view_scorer *s)
{
    const struct effective *e = &s->s->effective;

    if (!*e->why || e->reason == EFFECTIVE_OK)
        return;
    view_html_note(o, e->reason != EFFECTIVE_WAITING,
                   e->reason == EFFECTIVE_WAITING ? "Waits for the scoring API's configuration"
                   : e->kept                      ? "No summary can be made: the one before stays in force"
                                                  : "No summary can be made: it is sent nowhere",
                   e->why);
}

static void room_note(struct out *o, const struct tally *t)
{
    if (t->no_room == 0)
        return;
    html(o,
         "<div class=\"note bad\"><p><b>No room on %zu of its clusters</b>: their summaries would pass what "
         "a ManifestWork may hold.</p></div>\n",
         t->no_room);
}

/* Why it is not ready, in the words of its status. */
static void ready_note(struct out *o, const struct view_scorer *s)
{
    const json_t *condition;
    size_t i;

    json_array_foreach(kube_list(s->status, "conditions", NULL), i,
                       condition) if (strcmp(cstr(kube_str(condition, "type", NULL)), "Ready") == 0 &&
                                      s->ready != VIEW_READY)
        view_html_note(o, s->ready == VIEW_NOT_READY, cstr(kube_str(condition, "reason", NULL)),
                       cstr(kube_str(condition, "message", NULL)));
}

static void scorer_notes(struct out *o, const struct view_scorer *s)
{
    size_t mark = o->b->n;

    if (*s->s->spec_error)
        view_html_note(o, true,
                       s->s->has_spec || effective_usable(&s->s->effective)
                           ? "The spec cannot be used; the one before stays in force"
                           : "The spec cannot be used",
                       s->s->spec_error);
    probe_note(o, "Health", &s->probe->probe);
    probe_note(o, "Configuration", &s->probe->config);
    summary_note(o, s);
    same_name_note(o, s->s);
    room_note(o, &s->s->tally);
    if (*s->s->write_error)
        view_html_note(o, true, "Its status cannot be written", s->s->write_error);
    if (o->b->n == mark)
        ready_note(o, s);
}

static void asked_soft(struct out *o, const struct view *v, const char *what, const struct probe_part *p)
{
    char when[STATUS_WORD], took[STATUS_WORD];

    if (!p->asked)
        return;
    status_when(v->now_ms, p->at_ms, when);
    status_seconds(p->seconds, took);
    html(o, "<span class=\"soft\">%s %s, took %s</span>", what, when, took);
}

static void probe_facts(struct out *o, const struct view *v, const struct view_scorer *s)
{
    char next[STATUS_WORD], interval[STATUS_WORD];

    html_fact(o, "Health");
    html(o, "%s", view_health_word(s->probe->health));
    asked_soft(o, v, "asked", &s->probe->probe);
    html_fact_end(o);
    html_fact(o, "Configuration from");
    html(o, "%s", view_source_words(s));
    asked_soft(o, v, "/config read", &s->probe->config);
    html_fact_end(o);
    if (v->h->leading) {
        status_when(v->now_ms, s->probe->next_ms, next);
        html_fact(o, "Asked next");
        html(o, "%s", s->probe->next_ms == 0 ? "under way" : s->probe->next_ms > v->now_ms ? next : "now");
        html_fact_end(o);
    }
    if (s->s->effective.interval_ms) {
        status_seconds((double)s->s->effective.interval_ms / 1000, interval);
        html_fact(o, "Interval");
        html(o, "every %s", interval);
        html_fact_end(o);
    }
}

static void clusters_fact(struct out *o, const struct tally *t)
{
    html_fact(o, "Clusters");
    html_count(o, t->selected);
    html(o, "<span class=\"soft\">");
    html_count(o, t->up_to_date);
    html(o, " up to date, ");
    html_count(o, t->applied);
    html(o, " applied</span>");
    html_fact_end(o);
}

static void scoring_fact(struct out *o, const struct tally *t)
{
    if (t->selected == 0)
        return;
    html_fact(o, "Scoring on");
    html_count(o, t->scoring);
    html(o, "<span class=\"soft\">");
    html_count(o, t->failing);
    html(o, " failing, ");
    html_count(o, t->waiting);
    html(o, " waiting, ");
    html_count(o, t->silent);
    html(o, " without a report</span>");
    html_fact_end(o);
}

/* What agents make of the text. *ret is empty when they would make nothing of it. */
static int read_summary(struct summaries *ret, const struct buf *text)
{
    CLEANUP(problems_done) struct problems problems = {0};
    CLEANUP(cleanup_doc_free) struct doc *doc = NULL;
    BUF_AUTO(list, SUMMARY_BYTES);
    int r = buf_printf(&list, "[") ?: buf_put_str(&list, buf_str(text)) ?: buf_puts(&list, "]");

    if (r == 0)
        r = problems_init(&problems, "summary");
    if (r == 0)
        r = doc_parse(&doc, buf_str(&list), &problems);
    if (r == 0)
        r = summaries_parse(ret, doc_root(doc), PROBLEM_WARNING, &problems);
    return r == -EINVAL ? 0 : r;
}

static void destination_fact(struct out *o, const struct summary *s)
{
    html_fact(o, "Written to");
    html(o, "%s", s->destination == DESTINATION_NONE ? "/metrics only" : "AddOnPlacementScore");
    if (s->destination != DESTINATION_NONE && s->dimension_format)
        html(o, "<span class=\"soft\">items <code><bdi>%s</bdi></code></span>", s->dimension_format);
    html_fact_end(o);
}

/* All that is known of it but the notes. On its own page its clusters are told, and counted, by themselves. */
static void body(struct out *o, const struct view *v, const struct view_scorer *s, bool unfolded, bool own)
{
    CLEANUP(summaries_done) struct summaries read = {0};

    if (o->error == 0 && effective_usable(&s->s->effective))
        o->error = read_summary(&read, &s->s->effective.text);
    html(o, "<dl class=\"facts\">\n");
    probe_facts(o, v, s);
    if (v->h->leading)
        clusters_fact(o, &s->s->tally);
    if (v->h->leading && !own)
        scoring_fact(o, &s->s->tally);
    if (read.n)
        destination_fact(o, &read.list[0]);
    html(o, "</dl>\n");
    if (!own)
        view_html_failing(o, v, s);
    if (read.n)
        html_summary(o, &read.list[0], unfolded);
}

static void score_name(struct out *o, const struct view_scorer *s)
{
    const char *name = s->s->effective.score_name;

    if (name && strcmp(name, s->s->name) != 0)
        html(o, "<span class=\"soft\">score <bdi>%s</bdi></span>", name);
}

void view_html_scorer(struct out *o, const struct view *v, const struct view_scorer *s, bool unfolded)
{
    bool folded = !unfolded && !s->troubled;

    html(o, "<article class=\"card\"><div class=\"name\"><h3>");
    view_html_link(o, VIEW_SCORER, s->s->name);
    html(o, "</h3>");
    view_html_ready(o, s->ready);
    score_name(o, s);
    html(o, "</div>\n");
    scorer_notes(o, s);
    if (folded)
        html(o, "<details><summary>Health, clusters, query and endpoints</summary>");
    body(o, v, s, unfolded || folded, false);
    html(o, folded ? "</details></article>\n" : "</article>\n");
}

/* Ready is said by the badge and the notes, and is what one of the others says. */
static void condition_row(struct out *o, const json_t *c)
{
    const char *type = cstr(kube_str(c, "type", NULL)), *status = cstr(kube_str(c, "status", NULL));

    if (strcmp(type, "Ready") == 0)
        return;
    html(o, "<tr><td class=\"is\">");
    html_badge(o,
               strcmp(status, "True") == 0    ? "ok"
               : strcmp(status, "False") == 0 ? "failing"
                                              : "waiting",
               cstr(kube_str(c, "reason", NULL)));
    html(o, "</td><th scope=\"row\"><bdi>%s</bdi></th><td class=\"wide\"><bdi>%s</bdi></td></tr>\n", type,
         cstr(kube_str(c, "message", NULL)));
}

static void conditions(struct out *o, const struct view_scorer *s)
{
    const json_t *list = kube_list(s->status, "conditions", NULL), *c;
    size_t i;

    html(o, "<h2>Conditions</h2>\n<div class=\"card scorers troubles\"><table><caption class=\"unseen\">The "
            "conditions of its status</caption><thead><tr><th scope=\"col\">State</th><th "
            "scope=\"col\">Condition</th><th scope=\"col\">Message</th></tr></thead><tbody>\n");
    json_array_foreach(list, i, c) condition_row(o, c);
    html(o, "</tbody></table></div>\n");
}

void view_html_scorer_in_full(struct out *o, const struct view *v, const struct view_scorer *s)
{
    html(o, "<section class=\"card\" aria-label=\"State\">\n");
    scorer_notes(o, s);
    body(o, v, s, false, true);
    html(o, "</section>\n");
    conditions(o, s);
    if (v->h->leading)
        view_html_scorer_pairs(o, v, s);
}
