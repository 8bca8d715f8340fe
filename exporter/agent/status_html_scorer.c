/* One scorer on the status page. */
#include "exporter/agent/status_page.h"
#include "exporter/base/num.h"

enum { RANKED = 10, BEST_AND_WORST = 5 };

static void error_note(struct out *o, const struct scorer_status *st)
{
    if (st->rounds == 0 || st->error == ROUND_OK)
        return;
    html(o, "<div class=\"note bad\"><p><b>%s failed: %s</b>",
         st->stage == STAGE_SOURCE ? "The source" : "Scoring", round_error_word(st->error));
    if (st->failures > 1)
        html(o, ", %zu rounds in a row", st->failures);
    html(o, "</p><pre>%s</pre><p>Look at %s.</p></div>\n", st->reason, status_hint(st->error, st->stage));
}

static void source_note(struct out *o, const struct scorer_status *st)
{
    if (st->source_warnings == 0)
        return;
    html(o, "<div class=\"note\"><p><b>The source warns</b>");
    if (st->source_warnings > 1)
        html(o, ", %zu times; first:", st->source_warnings);
    html(o, "</p><pre>%s</pre></div>\n", st->source_warning);
}

static void results_note(struct out *o, const struct scorer_status *st)
{
    if (st->invalid + st->duplicates + st->cut == 0)
        return;
    html(o, "<div class=\"note\">");
    if (st->invalid) {
        html(o, "<p><b>Left out</b>: ");
        html_count(o, st->invalid);
        html(o, "%s</p><pre>%s</pre>",
             st->invalid == 1 ? " result that is not valid" : " results that are not valid; first:",
             st->first_invalid);
    }
    if (st->duplicates) {
        html(o, "<p><b>Duplicates</b>: ");
        html_count(o, st->duplicates);
        html(o, "%s</p>",
             st->duplicates == 1 ? " result replaced an earlier one with the same labels"
                                 : " results replaced earlier ones with the same labels");
    }
    if (st->cut) {
        html(o, "<p><b>Cut</b>: ");
        html_count(o, st->cut);
        html(o, "%s longer than <code>limits.labelValueBytes</code></p>",
             st->cut == 1 ? " label value" : " label values");
    }
    html(o, "</div>\n");
}

static void flow_fact(struct out *o, const struct scorer *s)
{
    const struct scorer_status *st = scorer_status(s);

    html_fact(o, "Series");
    if (status_scorer_asked(st) && scorer_summary(s)->source_type != SOURCE_NONE) {
        html_count(o, st->source_series);
        html(o, " from the source → ");
    }
    if (status_scorer_asked(st) && st->error == ROUND_OK) {
        html_count(o, st->results);
        html(o, "%s → ", st->results == 1 ? " result" : " results");
    } else if (st->rounds) {
        html(o, "failed → ");
    }
    html_count(o, status_series(s));
    html(o, " exposed");
    html_fact_end(o);
}

static void latency_fact(struct out *o, const struct scorer *s)
{
    const struct scorer_status *st = scorer_status(s);
    bool fetched = scorer_summary(s)->source_type != SOURCE_NONE;
    char fetch[STATUS_WORD], perform[STATUS_WORD];

    if (st->rounds == 0)
        return;
    status_seconds(st->fetch_s, fetch);
    status_seconds(st->perform_s, perform);
    html_fact(o, "Latency");
    if (fetched)
        html(o, "source %s%s", fetch, status_scorer_asked(st) ? ", " : "");
    if (status_scorer_asked(st))
        html(o, "scoring %s", perform);
    html_fact_end(o);
}

static void bytes_fact(struct out *o, const struct scorer *s)
{
    const struct scorer_status *st = scorer_status(s);
    char fetched[STATUS_WORD], sent[STATUS_WORD], received[STATUS_WORD];

    if (st->rounds == 0)
        return;
    status_bytes(st->received[STAGE_SOURCE], fetched);
    status_bytes(st->sent[STAGE_SCORING], sent);
    status_bytes(st->received[STAGE_SCORING], received);
    html_fact(o, "Transferred");
    if (scorer_summary(s)->source_type != SOURCE_NONE)
        html(o, "%s from the source%s", fetched, status_scorer_asked(st) ? ", " : "");
    if (status_scorer_asked(st))
        html(o, "%s to the scorer, %s back", sent, received);
    html_fact_end(o);
}

static void next_fact(struct out *o, const struct scorer *s, int64_t now_ms)
{
    const struct scorer_status *st = scorer_status(s);
    char word[STATUS_WORD], interval[STATUS_WORD];

    html_fact(o, "Next round");
    if (st->running) {
        status_duration(now_ms - st->started_ms, word);
        html(o, "under way for %s", word);
    } else if (st->next_ms) {
        status_when(now_ms, st->next_ms, word);
        html(o, "%s", st->next_ms > now_ms ? word : "now");
    } else {
        html(o, "none planned");
    }
    status_seconds((double)scorer_summary(s)->interval_ms / 1000, interval);
    html(o, "<span class=\"soft\">every %s</span>", interval);
    html_fact_end(o);
}

static void facts(struct out *o, const struct scorer *s, int64_t now_ms)
{
    const struct scorer_status *st = scorer_status(s);

    html(o, "<dl class=\"facts\">");
    html_fact(o, "Last round");
    html_moment(o, now_ms, st->ended_ms);
    html_fact_end(o);
    next_fact(o, s, now_ms);
    html_fact(o, "Scores from");
    if (scorer_batch(s))
        html_moment(o, now_ms, scorer_batch(s)->at.ms);
    else
        html(o, "none exposed");
    html_fact_end(o);
    flow_fact(o, s);
    latency_fact(o, s);
    bytes_fact(o, s);
    html_fact(o, "Rounds");
    html_count(o, st->rounds);
    if (st->failures > 1)
        html(o, ", the last %zu failed", st->failures);
    else if (st->rounds)
        html(o, "%s", st->failures ? ", the last one failed" : ", the last one good");
    html_fact_end(o);
    html_fact(o, "Last success");
    html_moment(o, now_ms, st->succeeded_ms);
    html_fact_end(o);
    html(o, "</dl>\n");
}

static void score_row(struct out *o, const struct batch *b, size_t series, struct buf *scratch)
{
    struct shown_label labels[SHOWN_LABELS];
    size_t n = status_labels(o, b, series, scratch, labels);
    char score[NUM_MAX];

    score[num_put_double(score, b->values[series])] = '\0';
    html(o, "<tr><td class=\"labels\">");
    for (size_t i = 0; i < n; i++) {
        html(o, "<span><i>%s</i><bdi>", labels[i].name);
        html_text(o, labels[i].value);
        html(o, "</bdi></span> ");
    }
    html(o, "%s</td><td class=\"n\">%s</td></tr>\n", n ? "" : "(no labels)", score);
}

static void score_table(struct out *o, const char *caption, const struct batch *b, const size_t *series,
                        size_t n)
{
    BUF_AUTO(scratch, LABEL_SCRATCH);

    html(o,
         "<table><caption>%s</caption><thead class=\"unseen\"><tr><th scope=\"col\">Labels</th>"
         "<th scope=\"col\">Score</th></tr></thead><tbody>\n",
         caption);
    for (size_t i = 0; i < n; i++)
        score_row(o, b, series[i], &scratch);
    html(o, "</tbody></table>\n");
}

static void scores(struct out *o, const struct batch *b)
{
    struct ranking r;

    status_rank(b, RANKED, &r);
    if (r.numbers + r.nans == 0)
        return;
    html(o, "<div class=\"pair\">\n");
    if (r.numbers > RANKED) {
        score_table(o, "Highest scores", b, r.highest, BEST_AND_WORST);
        score_table(o, "Lowest scores", b, r.lowest, BEST_AND_WORST);
    } else if (r.numbers) {
        score_table(o, r.nans ? "Scores" : "All scores", b, r.highest, r.n);
    }
    html(o, "</div>\n");
    if (r.nans) {
        html(o, "<p class=\"soft\">");
        html_count(o, r.nans);
        html(o, "%s</p>\n", r.nans == 1 ? " score is NaN" : " scores are NaN");
    }
}

static void secret(struct out *o, const struct secret_ref *ref)
{
    if (ref->name)
        html(o,
             "<span class=\"soft\">token from Secret <code><bdi>%s</bdi></code>, key "
             "<code><bdi>%s</bdi></code></span>",
             ref->name, cstr(ref->key));
}

static void endpoint_fact(struct out *o, const char *what, const char *url, const struct secret_ref *ref)
{
    BUF_AUTO(plain, 1 << 20);

    if (o->error == 0)
        o->error = http_url_for_people(str_of(url), &plain);
    html(o, "<div class=\"wide\"><dt>%s</dt><dd><code><bdi>", what);
    html_text(o, buf_str(&plain));
    html(o, "</bdi></code>");
    secret(o, ref);
    html_fact_end(o);
}

static void query_fact(struct out *o, const struct summary_source *s)
{
    char range[STATUS_WORD], step[STATUS_WORD];
    struct str joined = str_of(s->query), one;
    size_t at = 0;

    html(o, "<div class=\"wide\"><dt>Query</dt><dd>");
    while ((one = summary_next_query(joined, &at)).n) {
        html(o, "<pre><bdi>");
        html_text(o, one);
        html(o, "</bdi></pre>");
    }
    status_seconds((double)s->range_s, range);
    status_seconds((double)s->step_s, step);
    html(o, "<span class=\"soft\">over %s, a point every %s</span></dd></div>\n", range, step);
}

void html_summary(struct out *o, const struct summary *s, bool unfolded)
{
    html(o, "<details%s><summary>Query and endpoints</summary><dl class=\"facts\">\n",
         unfolded ? " open" : "");
    for (size_t i = 0; i < summary_sources(s); i++) {
        const struct summary_source from = summary_source(s, i);

        query_fact(o, &from);
        endpoint_fact(o, "Source", cstr(from.endpoint), &from.auth);
    }
    if (summary_sources(s) == 0) {
        html_fact(o, "Source");
        html(o, "None: the scorer is asked without series");
        html_fact_end(o);
    }
    endpoint_fact(o, "Scoring", cstr(s->scoring_endpoint), &s->scoring_auth);
    html(o, "</dl></details>\n");
}

void html_scorer(struct out *o, const struct scorer *s, size_t i, int64_t now_ms, bool unfolded)
{
    const struct summary *summary = scorer_summary(s);
    const struct scorer_status *st = scorer_status(s);

    html(o, "<article class=\"card\" id=\"s%zu\"><div class=\"name\"><h3><bdi>%s</bdi></h3>", i,
         summary->score_name);
    html_state(o, scorer_state(s));
    if (strcmp(summary->name, summary->score_name) != 0)
        html(o, "<span class=\"soft\">scorer <bdi>%s</bdi></span>", summary->name);
    html(o, "</div>\n");
    error_note(o, st);
    source_note(o, st);
    results_note(o, st);
    facts(o, s, now_ms);
    scores(o, scorer_batch(s));
    html_summary(o, summary, unfolded);
    html(o, "</article>\n");
}
