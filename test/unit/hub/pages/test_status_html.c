#include "exporter/agent/status_page.h"
#include "test/oom.h"
#include "test/unit/hub/pages/view_world.h"

#include <errno.h>

static void has_all(const struct buf *b, const char *const *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        assert_has(b, all[i]);
}

static void name_failing(struct hub_scorer *s, const struct hub_cluster *c, const struct report_cell *cell)
{
    s->tally.failing++;
    s->tally.named[s->tally.n_named].cluster = c;
    s->tally.named[s->tally.n_named].pair = cell ? PAIR_FAILING : PAIR_NOT_WRITTEN;
    s->tally.named[s->tally.n_named++].cell = cell;
}

static void page_shows_everything(void **state)
{
    static const char *const all[] = {
        "<title>controller · dynamic-scoring</title>",
        "<p class=\"over-title\">dynamic-scoring controller</p>",
        "<h1><bdi>open-cluster-management</bdi></h1><span class=\"state ok\">leading</span>",
        "<dt>clusters</dt><dd>1</dd>",
        "<dt>lag</dt><dd>none</dd>",
        "<a href=\"/scorer?name=cpu\"><bdi>cpu</bdi></a><span class=\"under\"><bdi>my_score</bdi></span>",
        "<h3><a href=\"/scorer?name=cpu\"><bdi>cpu</bdi></a></h3>",
        "<th scope=\"col\" title=\"cpu\"><a href=\"/scorer?name=cpu\"><bdi>cpu</bdi></a></th>",
        "<span class=\"state ok\">ready</span>",
        "12 s ago<span class=\"under\">3.1 ms</span>",
        "asked 12 s ago, took 3.1 ms",
        "/config read 12 s ago, took 4.2 ms",
        "<dt>Interval</dt><dd>every 1m</dd>",
        "<dt>Clusters</dt><dd>1<span class=\"soft\">1 up to date, 0 applied</span>",
        "<dt>Written to</dt><dd>AddOnPlacementScore<span class=\"soft\">items "
        "<code><bdi>${scoreName}</bdi></code></span>",
        "<details open><summary>Query and endpoints</summary>",
        "<pre><bdi>sum by (node) (rate(node_cpu_seconds_total{mode!=&quot;idle&quot;}[5m]))</bdi></pre>",
        "http://prometheus.monitoring:9090/api/v1/query_range",
        "token from Secret <code><bdi>scorer-token</bdi></code>, key <code><bdi>token</bdi></code>",
        "<th scope=\"row\" title=\"c1\"><a href=\"/cluster?name=c1\"><bdi>c1</bdi></a></th>"
        "<td><b class=\"cell ok\" title=\"cpu: scores\">✓</b>",
        "All clusters are up to date, and no agent reports a failing scorer.",
        "<code>dynamic-scoring-config</code><span class=\"soft\">in force</span>",
        "<dt>Largest summaries</dt><dd>2 KiB<span class=\"soft\">of 500 KiB</span>",
        "<td><code><bdi>dev-*</bdi></code></td><td><code><bdi>*</bdi></code></td>",
        "<dt>Up for</dt><dd>3h 5m</dd>",
        "<a href=\"/metrics\">/metrics</a>",
        "name=\"viewport\"",
    };
    struct mask mask = {"dev-*", "*"};
    BUF_AUTO(b, OUTPUT_MAX);
    WORLD(w);
    struct hub_scorer *s = add_scorer(w, "cpu", "my_score");

    (void)state;
    add_report(add_cluster(w, "c1", 1), s, SCORER_OK, NULL);
    s->tally = (struct tally){.selected = 1, .up_to_date = 1, .scoring = 1};
    w->hub.config.masks = (struct masks){.list = &mask, .n = 1};
    w->hub.totals.largest = 2048;
    tallies = 0;
    render(w, hub_html, &b);
    assert_int_equal(tallies, 1);
    has_all(&b, all, ARRAY_SIZE(all));
    assert_lacks(&b, "hunter2");
    assert_lacks(&b, "<script");
    assert_lacks(&b, "style=\"");
    assert_lacks(&b, "src=");
    assert_lacks(&b, "<div class=\"note");
}

static void page_shows_what_is_wrong_with_scorers(void **state)
{
    static const char *const all[] = {
        "<title>4 failing · controller",
        "unhealthy<span class=\"under\">Timeout</span>",
        "<b>Health: Timeout</b>, 4 times in a row</p><pre>no answer &lt;within&gt; 5 s</pre>",
        "<b>Configuration: InvalidConfig</b></p><pre>line 3: no</pre>",
        "<b>The spec cannot be used</b></p><pre>spec.scoring: missing</pre>",
        "<b>No summary can be made: it is sent nowhere</b></p><pre>query: missing</pre>",
        "<b>Same score name</b> as <a href=\"/scorer?name=slow\"><bdi>slow</bdi></a>, which is older: this "
        "one is "
        "in no summary.",
        "<b>Same score name</b> as <a href=\"/scorer?name=late\"><bdi>late</bdi></a>, which is younger, and "
        "in no "
        "summary.",
        "<b>No room on 3 of its clusters</b>",
        "<b>Its status cannot be written</b></p><pre>HTTP 409</pre>",
        "Trouble on 3 clusters</caption>",
        "stale</span></td><th scope=\"row\"><a href=\"/cluster?name=c1\"><bdi>c1</bdi></a></th><td "
        "class=\"wide\"><p><bdi>HTTP 502</bdi></p></td>",
        "not written</span></td><th scope=\"row\"><a href=\"/cluster?name=c2\"><bdi>c2</bdi></a></th><td "
        "class=\"wide\"><p><bdi>HTTP 403</bdi></p>",
        "not applied</span></td><th scope=\"row\"><a href=\"/cluster?name=c3\"><bdi>c3</bdi></a></th><td "
        "class=\"wide\"><p><bdi>denied</bdi></p></td>",
    };
    BUF_AUTO(b, OUTPUT_MAX);
    WORLD(w);
    struct hub_scorer *fine = add_scorer(w, "a-fine", "fine"), *slow = add_scorer(w, "slow", "same");
    struct hub_scorer *late = add_scorer(w, "late", "same"), *unread = add_scorer(w, "unread", "unread");
    struct hub_scorer *part = add_scorer(w, "part", "part");
    struct hub_cluster *c1 = add_cluster(w, "c1", 1), *c2 = add_cluster(w, "c2", 1);
    struct hub_cluster *c3 = add_cluster(w, "c3", 1);

    (void)state;
    fail_probe(slow, HEALTH_INACTIVE, "Timeout", "no answer <within> 5 s");
    slow->probe->status.config = (struct probe_part){true, false, 1, "InvalidConfig", "line 3: no", 0.1, NOW};
    slow->younger = late;
    late->older = slow;
    unread->has_spec = false;
    buf_truncate(&unread->effective.text, 0);
    (void)strcpy(unread->spec_error, "spec.scoring: missing");
    (void)strcpy(unread->write_error, "HTTP 409");
    part->effective.reason = EFFECTIVE_INCOMPLETE;
    (void)strcpy(part->effective.why, "query: missing");
    add_report(c1, fine, SCORER_STALE, "HTTP 502");
    put_behind(c2, 3000, 1, "HTTP 403");
    name_failing(fine, c1, &c1->report.cells[0]);
    name_failing(fine, c2, NULL);
    not_applied(c3, "denied");
    name_failing(fine, c3, NULL);
    fine->tally.failing = 0; /* by the agents' reports: the heading is about all three */
    fine->tally.no_room = 3;
    add_scorer(w, "new", "new")->probe->status = (struct probe_status){.health = HEALTH_UNKNOWN};
    render(w, hub_html, &b);
    has_all(&b, all, ARRAY_SIZE(all));
    assert_has(&b, "<div class=\"note\"><p><b>NotReady</b></p><pre>for a reason</pre>");
    assert_true(strstr(b.p, "<bdi>unread</bdi>") < strstr(b.p, "<bdi>a-fine</bdi>"));
}

/* Each state of a pair has a sign, a word and a place in the legend. */
static void the_matrix_tells_each_state(void **state)
{
    static const char *const all[] = {
        "title=\"s0: failing: &lt;no&gt;\">✗</b>",
        "title=\"s1: waiting\">…</b>",
        "title=\"s2: no room\">□</b>",
        "title=\"s3: waiting\">…</b>",
        "title=\"s4: masked\">–</b>",
        "title=\"s0: behind\">↻</b>",
        "title=\"s0: not written: w\">!",
        "title=\"s0: nothing to score\">✓</b>",
        "title=\"s0: no report\">?</b>",
        "title=\"s0: not applied: denied\">!</b>",
        "<span><b class=\"cell empty\">↻</b> behind</span>",
    };
    struct hub_scorer *s[5];
    struct hub_cluster *c;
    BUF_AUTO(b, OUTPUT_MAX);
    WORLD(w);
    char name[8];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(s); i++) {
        (void)snprintf(name, sizeof(name), "s%zu", i);
        s[i] = add_scorer(w, name, name);
    }
    c = add_cluster(w, "one", 4);
    ((struct plan_group *)(uintptr_t)c->group)->set[0] = 0xb;
    ((struct plan_group *)(uintptr_t)c->group)->left_out = 1;
    add_report(c, s[0], SCORER_FAILING, "<no>");
    add_report(c, s[1], SCORER_WAITING, NULL);
    put_behind(add_cluster(w, "two", 1), 1000, 0, "");
    put_behind(add_cluster(w, "three", 1), 1000, 2, "w");
    add_report(add_cluster(w, "four", 1), s[0], SCORER_EMPTY, NULL);
    (void)add_cluster(w, "five", 1);
    not_applied(add_cluster(w, "six", 1), "denied");
    render(w, hub_html, &b);
    has_all(&b, all, ARRAY_SIZE(all));
}

static void clusters_in_trouble_come_worst_first(void **state)
{
    static const char *const in_order[] = {
        "<span class=\"state failing\">not written</span></td><th scope=\"row\"><a "
        "href=\"/cluster?name=z-write\"><bdi>z-write</bdi></a></th><td "
        "class=\"wide\"><p>Its ManifestWork cannot be written: <bdi>HTTP 403</bdi></p><p "
        "class=\"soft\">behind "
        "for 2m 12s, 5 writes failed in a row</p>",
        "<span class=\"state failing\">not applied</span></td><th scope=\"row\"><a "
        "href=\"/cluster?name=y-apply\"><bdi>y-apply</bdi></a></th><td "
        "class=\"wide\"><p>The work agent cannot apply it: <bdi>denied</bdi></p>",
        "<span class=\"state empty\">not available</span></td><th scope=\"row\"><a "
        "href=\"/cluster?name=x-away\"><bdi>x-away</bdi></a></th><td class=\"wide\"><p>The cluster is not "
        "available: <bdi>&lt;gone&gt;</bdi></p>",
        "<span class=\"state failing\">failing</span></td><th scope=\"row\"><a "
        "href=\"/cluster?name=x-score\"><bdi>x-score</bdi></a></th>",
        "and <a href=\"/cluster?name=x-score\">1 more</a>",
        "<span class=\"state empty\">agent in trouble</span></td><th "
        "scope=\"row\"><a href=\"/cluster?name=w-agent\"><bdi>w-agent</bdi></a></th><td "
        "class=\"wide\"><p>The agent refuses its configuration: <bdi>bad</bdi></p>",
        "<span class=\"state empty\">behind</span></td><th scope=\"row\"><a "
        "href=\"/cluster?name=v-behind\"><bdi>v-behind</bdi></a></th>",
    };
    struct hub_scorer *s[4];
    struct hub_cluster *c;
    BUF_AUTO(b, OUTPUT_MAX);
    WORLD(w);
    const char *last;
    char name[8];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(s); i++) {
        (void)snprintf(name, sizeof(name), "s%zu", i);
        s[i] = add_scorer(w, name, name);
    }
    put_behind(add_cluster(w, "v-behind", 4), 4000, 0, "");
    c = add_cluster(w, "w-agent", 4);
    c->report.there = true;
    c->report.trouble = strdup("bad");
    c = add_cluster(w, "x-score", 4);
    for (size_t i = 0; i < ARRAY_SIZE(s); i++)
        add_report(c, s[i], SCORER_FAILING, NULL);
    add_cluster(w, "x-away", 4)->unavailable = strdup("<gone>");
    (void)strcpy(add_cluster(w, "y-apply", 4)->work.why, "denied");
    put_behind(add_cluster(w, "z-write", 4), 132000, 5, "HTTP 403");
    (void)add_cluster(w, "fine", 4);
    render(w, hub_html, &b);
    last = b.p;
    for (size_t i = 0; i < ARRAY_SIZE(in_order); i++) {
        assert_has(&b, in_order[i]);
        assert_true(strstr(b.p, in_order[i]) > last);
        last = strstr(b.p, in_order[i]);
    }
}

static void a_large_fleet_is_cut_to_what_matters(void **state)
{
    BUF_AUTO(b, OUTPUT_MAX);
    WORLD(w);
    char name[32];

    (void)state;
    (void)add_scorer(w, "cpu", "cpu");
    for (size_t i = 0; i < 10000; i++) {
        struct hub_cluster *c;
        (void)snprintf(name, sizeof(name), "cluster-%05zu", i);
        c = add_cluster(w, name, 1);
        if (i % 8 == 0)
            put_behind(c, 1000, i % 16 == 0, "no");
    }
    render(w, hub_html, &b);
    assert_lacks(&b, "class=\"cell");
    assert_has(&b, "<bdi>cluster-01584</bdi>"); /* the hundredth whose write failed */
    assert_lacks(&b, "<bdi>cluster-01600</bdi>");
    assert_lacks(&b, "<bdi>cluster-00008</bdi>");
    assert_has(&b, "and 1,150 more, not shown here");
    assert_true(b.n < 200000);
}

static void many_scorers_are_folded_but_for_those_in_trouble(void **state)
{
    BUF_AUTO(b, OUTPUT_MAX);
    WORLD(w);
    char name[32];

    (void)state;
    for (size_t i = 0; i < 31; i++) {
        (void)snprintf(name, sizeof(name), "s%02zu", i);
        (void)add_scorer(w, name, name);
    }
    fail_probe(w->by_age[17], HEALTH_ACTIVE, "DNS", "no such host");
    (void)add_cluster(w, "c1", 31);
    render(w, hub_html, &b);
    assert_has(&b, "<article class=\"card\"><div class=\"name\"><h3><a href=\"/scorer?name=s17\">");
    assert_has(&b, "no such host</pre></div>\n<dl class=\"facts\">");
    assert_has(&b, "<details><summary>Health, clusters, query and endpoints</summary><dl class=\"facts\">");
    assert_lacks(&b, "class=\"cell"); /* too many columns */
}

static void a_standby_says_so(void **state)
{
    BUF_AUTO(b, OUTPUT_MAX);
    WORLD(w);

    (void)state;
    (void)add_scorer(w, "cpu", "cpu");
    w->by_age[0]->object =
        json_pack("{s:{s:[{s:s,s:s}]}}", "status", "conditions", "type", "Ready", "status", "True");
    (void)add_cluster(w, "c1", 1);
    w->hub.leading = false;
    w->lease.holder = "other-<1>";
    w->lease.trouble = "HTTP 403";
    render(w, hub_html, &b);
    assert_has(&b, "<span class=\"state waiting\">standing by</span>");
    assert_has(&b, "<bdi>other-&lt;1&gt;</bdi> leads");
    assert_has(&b, "<b>The Lease cannot be read or written</b></p><pre>HTTP 403</pre>");
    assert_has(&b, "<span class=\"state ok\">ready</span>");
    assert_has(&b, "data-what=\"Up to date\">–</td>");
    assert_lacks(&b, "<h2 id=\"clusters\">");
    assert_lacks(&b, "<dt>behind</dt>");
}

static void trouble_with_the_api_server_shows(void **state)
{
    BUF_AUTO(b, OUTPUT_MAX);
    WORLD(w);

    (void)state;
    w->watches[0].trouble = w->watches[2].trouble = w->watches[3].trouble = "connection refused";
    w->watches[1].trouble = "HTTP 403";
    w->watches[3].synced = false;
    render(w, hub_html, &b);
    assert_has(&b, "<b>Not all objects can be followed</b>; what is known of them stays.</p>"
                   "<pre>DynamicScorers: connection refused\nDynamicScoringConfigs: HTTP 403\n"
                   "ManagedClusters: connection refused\nManifestWorks: connection refused</pre></div>");
    assert_has(&b, "Not all objects have been listed yet");
    assert_has(&b, "d1302e");
    assert_has(&b, "No scorers yet: create a DynamicScorer in namespace <bdi>open-cluster-management</bdi>");
    assert_has(&b, "No ManagedCluster is accepted by this hub yet.");
}

static void the_configuration_shows(void **state)
{
    struct hub_config other = {.object = json_pack("{s:{s:s}}", "metadata", "name", "<mine>")};
    BUF_AUTO(b, OUTPUT_MAX);
    BUF_AUTO(going, OUTPUT_MAX);
    WORLD(w);

    (void)state;
    json_decref(w->hub.config.object);
    w->hub.config.object = NULL;
    (void)strcpy(w->hub.config.masks_error, "spec.masks[2].scoreName: expected a string");
    assert_int_equal(map_set(&w->hub.other_configs, "<mine>", &other), 0);
    w->hub.totals.left_out = 2;
    render(w, hub_html, &b);
    assert_has(&b, "<b>There is no DynamicScoringConfig <code>dynamic-scoring-config</code></b>");
    assert_has(&b, "spec.masks[2].scoreName: expected a string");
    assert_has(&b, "<b><bdi>&lt;mine&gt;</bdi> does not count</b>");
    assert_has(&b, "<b class=\"state failing\">2 scorers</b>");
    w->hub.config.object = json_pack("{s:{s:s}}", "metadata", "deletionTimestamp", "2026-11-21T06:00:00Z");
    w->hub.totals.works = 7;
    render(w, hub_html, &going);
    assert_has(&going, "<b>The DynamicScoringConfig is being deleted</b>: 7 ManifestWorks are still to go.");
    json_decref(other.object);
}

/* Every place where other people's words come in. */
static void nothing_hostile_gets_out(void **state)
{
    static const char evil[] = "\"'><script>a</script><img src=x onerror=a>\x01\x1b[2J&amp;\xff";
    struct mask mask = {evil, evil};
    BUF_AUTO(b, OUTPUT_MAX);
    WORLD(w);
    struct hub_scorer *s = add_scorer(w, evil, evil), *twin = add_scorer(w, "twin", "twin");
    struct hub_cluster *c;

    (void)state;
    fail_probe(s, HEALTH_INACTIVE, "<Timeout>", evil);
    (void)strcpy(s->spec_error, evil);
    (void)strcpy(s->write_error, evil);
    (void)strcpy(s->effective.why, evil);
    twin->older = s;
    c = add_cluster(w, evil, 1);
    add_report(c, s, SCORER_FAILING, evil);
    c->report.trouble = strdup(evil);
    (void)strcpy(c->work.why, evil);
    put_behind(c, 1, 1, evil);
    name_failing(s, c, c->report.cells);
    w->hub.o.namespace = w->hub.o.agent_namespace = evil;
    w->watches[0].trouble = w->lease.trouble = evil;
    (void)strcpy(w->hub.config.masks_error, evil);
    w->hub.config.masks = (struct masks){.list = &mask, .n = 1};
    render(w, hub_html, &b);
    assert_lacks(&b, "<script");
    assert_lacks(&b, "<img");
    assert_lacks(&b, "<Timeout");
    assert_lacks(&b, "\x01");
    assert_lacks(&b, "\x1b");
    assert_lacks(&b, "\xff");
    assert_has(&b, "&quot;&#39;&gt;&lt;script&gt;a");
}

static void a_page_is_whole_or_not_at_all(void **state)
{
    WORLD(w);
    struct hub_scorer *s = add_scorer(w, "cpu", "cpu");

    (void)state;
    add_report(add_cluster(w, "c1", 1), s, SCORER_FAILING, "no");
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        BUF_AUTO(b, OUTPUT_MAX);
        int r = hub_html(&w->hub, &b);

        assert_true(r == 0 || (r == -ENOMEM && b.n == 0));
        assert_true(r == 0 || oom_happened());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(page_shows_everything),
        cmocka_unit_test(page_shows_what_is_wrong_with_scorers),
        cmocka_unit_test(the_matrix_tells_each_state),
        cmocka_unit_test(clusters_in_trouble_come_worst_first),
        cmocka_unit_test(a_large_fleet_is_cut_to_what_matters),
        cmocka_unit_test(many_scorers_are_folded_but_for_those_in_trouble),
        cmocka_unit_test(a_standby_says_so),
        cmocka_unit_test(trouble_with_the_api_server_shows),
        cmocka_unit_test(the_configuration_shows),
        cmocka_unit_test(nothing_hostile_gets_out),
        cmocka_unit_test(a_page_is_whole_or_not_at_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
