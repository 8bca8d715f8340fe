#include "test/oom.h"
#include "test/unit/hub/pages/view_world.h"

#include <errno.h>

static void in_order(const struct buf *b, const char *const *all, size_t n)
{
    const char *last = b->p;

    for (size_t i = 0; i < n; i++) {
        assert_has(b, all[i]);
        if (!strstr(last, all[i]))
            fail_msg("too early: %s\nin:\n%s", all[i], b->p);
        last = strstr(last, all[i]);
    }
}

static void mask(const struct hub_cluster *c, size_t entry, bool for_lack_of_room)
{
    struct plan_group *g = (struct plan_group *)(uintptr_t)c->group;

    g->set[0] &= ~((uint64_t)1 << entry);
    g->left_out = for_lack_of_room;
}

static void a_scorer_shows_all_its_clusters_the_worst_first(void **state)
{
    static const char *const all[] = {
        "<title>s · dynamic-scoring</title>",
        "<a href=\"/\">dynamic-scoring controller</a> · scorer</p>",
        "<h1><bdi>s</bdi></h1><span class=\"state ok\">ready</span>",
        "<a href=\"/api/v1/scorer?name=s\">/api/v1/scorer?name=s</a>",
        "<dt>Health</dt><dd>healthy",
        "<dt>Configuration from</dt><dd>/config",
        "http://prometheus.monitoring:9090/api/v1/query_range",
        "<h2>Conditions</h2>",
        "<span class=\"state ok\">Answers</span></td><th scope=\"row\"><bdi>Healthy</bdi></th><td "
        "class=\"wide\"><bdi>HTTP 200</bdi></td></tr>",
        "<dt>clusters</dt><dd>9</dd>",
        "<dt>scores</dt><dd>1</dd>",
        "<dt>not written</dt><dd>1</dd>",
        "<dt>masked</dt><dd>1</dd>",
        "not written</span></td><th scope=\"row\"><a href=\"/cluster?name=k9\"><bdi>k9</bdi></a></th><td "
        "class=\"wide\"><p><bdi>HTTP 403</bdi></p><p class=\"soft\">behind for 3 s</p></td>",
        "not applied</span></td><th scope=\"row\"><a href=\"/cluster?name=k8\">",
        "<bdi>denied</bdi>",
        "failing</span></td><th scope=\"row\"><a href=\"/cluster?name=k6\">",
        "<bdi>HTTP 502</bdi>",
        "failing</span></td><th scope=\"row\"><a href=\"/cluster?name=k7\">",
        "no report</span></td><th scope=\"row\"><a href=\"/cluster?name=k5\">",
        "waiting</span></td><th scope=\"row\"><a href=\"/cluster?name=k4\">",
        "no room</span></td><th scope=\"row\"><a href=\"/cluster?name=k3\">",
        "masked</span></td><th scope=\"row\"><a href=\"/cluster?name=k2\">",
        "scores</span></td><th scope=\"row\"><a href=\"/cluster?name=k1\">",
    };
    BUF_AUTO(b, OUTPUT_MAX);
    WORLD(w);
    struct hub_scorer *s;
    struct hub_cluster *k;

    (void)state;
    (void)add_scorer(w, "first", "first");
    (void)add_scorer(w, "second", "second");
    s = add_scorer(w, "s", "s"); /* the entry that may lack room */
    add_report(add_cluster(w, "k1", 3), s, SCORER_OK, NULL);
    mask(add_cluster(w, "k2", 3), 2, false);
    mask(add_cluster(w, "k3", 3), 2, true);
    add_report(add_cluster(w, "k4", 3), s, SCORER_WAITING, NULL);
    (void)add_cluster(w, "k5", 3);
    add_report(add_cluster(w, "k6", 3), s, SCORER_FAILING, "HTTP 502");
    add_report(add_cluster(w, "k7", 3), s, SCORER_FAILING, NULL);
    not_applied(k = add_cluster(w, "k8", 3), "denied");
    put_behind(add_cluster(w, "k9", 3), 3000, 1, "HTTP 403");
    add_cluster(w, "leaving", 3)->managed = false;
    render_one(w, hub_html_scorer, "s", &b);
    in_order(&b, all, ARRAY_SIZE(all));
    assert_lacks(&b, "leaving");
    assert_lacks(&b, "Scoring on"); /* the tiles say so */
    assert_lacks(&b, "<bdi>Ready</bdi>");
    assert_lacks(&b, "more, not shown here");
    assert_lacks(&b, "hunter2");
    assert_lacks(&b, "<script");
    assert_lacks(&b, "style=\"");
    assert_lacks(&b, "src=");
}

static void a_large_fleet_is_cut_and_says_so(void **state)
{
    BUF_AUTO(b, OUTPUT_MAX);
    WORLD(w);
    struct hub_scorer *s = add_scorer(w, "s", "s");
    char name[32];

    (void)state;
    for (size_t i = 0; i < 10000; i++) {
        struct hub_cluster *c;

        (void)snprintf(name, sizeof(name), "cluster-%05zu", i);
        c = add_cluster(w, name, 1);
        add_report(c, s, i == 9999 ? SCORER_STALE : SCORER_OK, i == 9999 ? "the last one" : NULL);
    }
    render_one(w, hub_html_scorer, "s", &b);
    assert_has(&b, "<dt>clusters</dt><dd>10,000</dd>");
    assert_has(&b, "<bdi>the last one</bdi>");
    assert_has(&b, "<bdi>cluster-00998</bdi>");
    assert_lacks(&b, "<bdi>cluster-00999</bdi>");
    assert_has(&b, "and 9,000 more, not shown here: <a href=\"/api/v1/scorer?name=s\">the JSON</a> has all");
    assert_true(b.n < 1 << 20);
}

static void what_is_sent_nowhere_says_so(void **state)
{
    BUF_AUTO(b, OUTPUT_MAX);
    WORLD(w);
    struct hub_scorer *s = add_scorer(w, "s", "s");

    (void)state;
    (void)add_cluster(w, "c", 0);
    s->entry = SIZE_MAX;
    s->probe->status.health = HEALTH_INACTIVE;
    render_one(w, hub_html_scorer, "s", &b);
    assert_has(&b, "<span class=\"state failing\">not ready</span>");
    assert_has(&b, "<dt>Health</dt><dd>unhealthy");
    assert_has(&b, "It is sent to no cluster now: the condition Distributed says why.");
    assert_lacks(&b, "/cluster?name=c");
}

static void a_cluster_shows_all_its_scorers(void **state)
{
    static const char *const all[] = {
        "<a href=\"/\">dynamic-scoring controller</a> · cluster</p>",
        "<h1><bdi>c</bdi></h1><span class=\"state failing\">not written</span>",
        "<b>Its ManifestWork cannot be written</b></p><pre>HTTP 403</pre>",
        "<b>The work agent cannot apply its ManifestWork</b></p><pre>denied</pre>",
        "<b>The cluster is not available</b></p><pre>&lt;gone&gt;</pre>",
        "<b>The agent refuses its configuration</b></p><pre>summaries[0]: no</pre>",
        "<dt>ManifestWork</dt><dd>there<span class=\"soft\">behind for 2m 12s, 5 failed writes, not applied",
        "<dt>Summaries</dt><dd>3<span class=\"soft\">2.6 KiB of 500 KiB, no room for 1</span>",
        "<dt>Agent&#39;s report</dt><dd>1 scorer<span class=\"soft\">1 failing</span>",
        "<dt>scorers</dt><dd>4</dd>",
        "not available</span></td><th scope=\"row\"><a href=\"/scorer?name=a\"><bdi>a</bdi></a></th><td "
        "class=\"wide\"><p><bdi>the cluster is not available: &lt;gone&gt;</bdi></p></td>",
        "<a href=\"/scorer?name=b\">",
        "no room</span></td><th scope=\"row\"><a href=\"/scorer?name=large\">",
        "masked</span></td><th scope=\"row\"><a href=\"/scorer?name=masked\">",
        "<p>Not sent here now: 1 of <a href=\"/\">all scorers</a>; the condition Distributed of each says "
        "why.",
    };
    BUF_AUTO(b, OUTPUT_MAX);
    WORLD(w);
    struct hub_scorer *s = add_scorer(w, "b", "b");
    struct hub_cluster *c;

    (void)state;
    (void)add_scorer(w, "a", "a");
    (void)add_scorer(w, "large", "large");
    (void)add_scorer(w, "masked", "masked");
    add_scorer(w, "out", "out")->entry = SIZE_MAX;
    c = add_cluster(w, "c", 3);
    mask(c, 2, true);
    add_report(c, s, SCORER_FAILING, "HTTP 502");
    c->report.config_ok = false;
    c->report.trouble = strdup("summaries[0]: no");
    c->unavailable = strdup("<gone>");
    not_applied(c, "denied");
    put_behind(c, 132000, 5, "HTTP 403");
    render_one(w, hub_html_cluster, "c", &b);
    assert_has(&b, all[0]);
    in_order(&b, all, ARRAY_SIZE(all));
    assert_lacks(&b, "name=out");
}

static void clusters_without_anything(void **state)
{
    BUF_AUTO(b, OUTPUT_MAX);
    WORLD(w);
    struct hub_cluster *c = add_cluster(w, "c", 0);

    (void)state;
    render_one(w, hub_html_cluster, "c", &b);
    assert_has(&b, "<span class=\"state ok\">no trouble</span>");
    assert_has(&b, "There are no scorers yet.");
    free((void *)(uintptr_t)c->group);
    c->group = NULL;
    c->managed = false;
    c->work = (struct work_found){0};
    render_one(w, hub_html_cluster, "c", &b);
    assert_has(&b, "<dt>ManifestWork</dt><dd>none");
    assert_has(&b, "<dt>Agent&#39;s report</dt><dd>none yet");
    assert_has(&b, "It gets none: the hub has not accepted it, or it is being deleted.");
}

static void a_standby_knows_of_no_pairs(void **state)
{
    BUF_AUTO(b, OUTPUT_MAX);
    WORLD(w);

    (void)state;
    add_scorer(w, "s", "s")->object = json_pack("{s:{}}", "status");
    (void)add_cluster(w, "c", 1);
    w->hub.leading = false;
    w->lease.holder = "other";
    render_one(w, hub_html_scorer, "s", &b);
    assert_has(&b, "<bdi>other</bdi> leads");
    assert_lacks(&b, "/cluster?name=c");
    render_one(w, hub_html_cluster, "c", &b);
    assert_has(&b, "<bdi>other</bdi> leads");
    assert_lacks(&b, "/scorer?name=s");
}

/* Names and words of others, in text, attributes and URLs. */
static void nothing_hostile_gets_out(void **state)
{
    static const char evil[] = "\"'><script>a</script><img src=x onerror=a>\x01\x1b[2J&amp;%zu+#?\xff";
    static const char url[] =
        "?name=%22%27%3E%3Cscript%3Ea%3C%2Fscript%3E%3Cimg%20src%3Dx%20onerror%3Da%3E%01%1B"
        "%5B2J%26amp%3B%25zu%2B%23%3F%FF\"";
    int (*const pages[])(struct hub *, const char *, struct buf *) = {hub_html_scorer, hub_html_cluster};
    BUF_AUTO(b, OUTPUT_MAX);
    WORLD(w);
    struct hub_scorer *s = add_scorer(w, evil, evil);
    struct hub_cluster *c;

    (void)state;
    fail_probe(s, HEALTH_INACTIVE, "<script>", evil);
    (void)strcpy(s->spec_error, evil);
    c = add_cluster(w, evil, 1);
    add_report(c, s, SCORER_FAILING, evil);
    c->report.trouble = strdup(evil);
    c->unavailable = strdup(evil);
    not_applied(c, evil);
    put_behind(c, 1, 1, evil);
    s->tally.named[s->tally.n_named++].cluster = c;
    for (size_t i = 0; i < 3; i++) {
        if (i < ARRAY_SIZE(pages))
            render_one(w, pages[i], evil, &b);
        else
            render(w, hub_html, &b);
        assert_has(&b, url);
        assert_has(&b, "<bdi>&quot;&#39;&gt;&lt;script&gt;a");
        assert_lacks(&b, "<script");
        assert_lacks(&b, "<img");
        assert_lacks(&b, "\x01");
        assert_lacks(&b, "\x1b");
        assert_lacks(&b, "\xff");
        buf_truncate(&b, 0);
    }
}

static void none_of_that_name(void **state)
{
    BUF_AUTO(b, OUTPUT_MAX);
    WORLD(w);

    (void)state;
    (void)add_scorer(w, "s", "s");
    (void)add_cluster(w, "c", 1);
    assert_int_equal(hub_html_scorer(&w->hub, "c", &b), -ENOENT);
    assert_int_equal(hub_html_cluster(&w->hub, "s", &b), -ENOENT);
    assert_int_equal(b.n, 0);
}

static void a_page_is_whole_or_not_at_all(void **state)
{
    WORLD(w);
    struct hub_scorer *s = add_scorer(w, "s", "s");

    (void)state;
    add_report(add_cluster(w, "c", 1), s, SCORER_FAILING, "no");
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        BUF_AUTO(b, OUTPUT_MAX);
        BUF_AUTO(other, OUTPUT_MAX);
        int r = hub_html_scorer(&w->hub, "s", &b);

        assert_true(r == 0 || b.n == 0);
        r = r ?: hub_html_cluster(&w->hub, "c", &other);
        assert_true(r == 0 || (r == -ENOMEM && oom_happened() && other.n == 0));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scorer_shows_all_its_clusters_the_worst_first),
        cmocka_unit_test(a_large_fleet_is_cut_and_says_so),
        cmocka_unit_test(what_is_sent_nowhere_says_so),
        cmocka_unit_test(a_cluster_shows_all_its_scorers),
        cmocka_unit_test(clusters_without_anything),
        cmocka_unit_test(a_standby_knows_of_no_pairs),
        cmocka_unit_test(nothing_hostile_gets_out),
        cmocka_unit_test(none_of_that_name),
        cmocka_unit_test(a_page_is_whole_or_not_at_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
