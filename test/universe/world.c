/* Owns the nodes, Prometheus and the scoring APIs, and the schedule of faults. */
#include "test/universe/world.h"

#include "controller/agent_kube.h"
#include "controller/hub/hub.h"
#include "exporter/agent/agent.h"
#include "exporter/agent/scorer.h"
#include "exporter/agent/web.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/def.h"
#include "exporter/base/loop.h"
#include "exporter/metric/page.h"
#include "exporter/score/scorer_state.h"
#include "exporter/ui/site.h"
#include "remotewrite/config.h"
#include "remotewrite/sink.h"
#include "test/universe/fleet.h"
#include "test/universe/sim.h"

#include <stdio.h>

enum {
    MORE_SERIES = 6,
    POLL_MS = 1000,
    LOOK_MS = 20 * 1000,
    DAY_MS = 24 * 3600 * 1000,
    RELOADS_A_TENANT = 4, /* a header of remote write names it: another one is another place */
    SAVED_MS = 5 * 1000,  /* until what was sent before the spool was opened is known there */
    FEW_SCORES = 100,     /* of those that AddOnPlacementScores show */
};

struct world universe;

static struct {
    unsigned bad_network, bad_disk, kills; /* per mille */
    unsigned variant;
    int64_t next_fault;
} f;

void respond(struct response *r, long status, const char *text, enum reached what)
{
    r->status = status;
    r->body = xstrdup(text);
    r->body_n = strlen(text);
    reached[what]++;
}

/* ---- Prometheus and the scoring APIs ---- */

static void prometheus_serve(struct response *r)
{
    r->status = 200;
    r->body = xstrdup("{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{\"metric\":{"
                      "\"node\":\"n1\"},"
                      "\"values\":[[1,\"2\"]]}]}}");
    r->body_n = strlen(r->body);
}

/* Each answer's scores are a number of its own, so that /metrics shows how old a score is. The last series
 * changes now and then. */
static void scoring_serve(struct response *r)
{
    unsigned score = ++universe.n_given % universe.n_scores;
    char more[MORE_SERIES * 64] = "";
    int n = 0;

    if (stream_chance(&universe.answers, universe.healed ? 0 : 60)) {
        f.variant++;
        reached[REACHED_SERIES_ENDED]++;
    }
    universe.score_at[score] = sim_now_ms;
    for (unsigned i = 0; i < universe.more_series; i++)
        n += snprintf(more + n, sizeof(more) - (size_t)n, "{\"metric\":{\"device\":\"d%u\"},\"score\":%u},",
                      i, score);
    r->status = 200;
    r->body = xasprintf("{\"results\":[%s{\"metric\":{\"node\":\"n0\"},\"score\":%u},{\"metric\":{\"node\":"
                        "\"n1\"},\"score\":%u},"
                        "{\"metric\":{\"node\":\"n2\",\"pod\":\"p\"},\"score\":%u},"
                        "{\"metric\":{\"node\":\"n3\",\"pod\":\"v%u\"},\"score\":%u}]}",
                        more, score, score, score, f.variant, score);
    r->body_n = strlen(r->body);
}

static void answer_badly(struct response *r)
{
    static const char *const bad[] = {"", "{\"results\":[{\"metric\":", "[1,2]", "{\"results\":7}"};

    free(r->body);
    if (stream_chance(&universe.network, 500))
        respond(r, 500, "overloaded", REACHED_BAD_ANSWER);
    else
        respond(r, 200, bad[stream_below(&universe.network, ARRAY_SIZE(bad))], REACHED_BAD_ANSWER);
}

/* The API server that is asked; -1: none. */
static int server_of(const char *url)
{
    const char *cluster = strstr(url, "//cluster");

    return strstr(url, "//hub/") ? HUB_SERVER : cluster ? cluster[9] - '0' : -1;
}

static void world_route(const struct request *rq, struct sim_node *a, struct response *r)
{
    int server = server_of(rq->url);

    if (server >= 0)
        kube_serve(server, rq, a, r);
    else if (strstr(rq->url, "//tsdb/"))
        tsdb_serve(rq, a, r);
    else if (strstr(rq->url, "//prometheus/"))
        prometheus_serve(r);
    else if (!fleet_serve_api(rq, r))
        scoring_serve(r);
}

static void answer_get_lost(struct response *r, bool is_kube)
{
    r->hangs = true;
    reached[REACHED_KUBE_LOST] += is_kube;
    if (r->feed)
        r->feed->gone = true;
    r->feed = NULL;
    reached[REACHED_ANSWER_LOST]++;
}

void world_note_abandoned(int node, const char *url)
{
    if (strstr(url, "//tsdb/"))
        tsdb_give_up(&universe.nodes[node]);
}

void world_serve(const struct request *rq, struct response *ret)
{
    struct sim_node *a = &universe.nodes[rq->node];
    bool is_tsdb = strstr(rq->url, "//tsdb/"),
         faulty = !universe.healed && stream_chance(&universe.network, f.bad_network);

    *ret = (struct response){.delay_ms = 1 + (int64_t)stream_below(&universe.network, 50)};
    if (sim_now_ms < a->partition_until) {
        ret->refused = true;
        return;
    }
    if (faulty && stream_chance(&universe.network, 300)) { /* before it arrives */
        ret->hangs = true;
        reached[REACHED_HANG]++;
        return;
    }
    universe.answer_is_lost = faulty;
    world_route(rq, a, ret);
    if (faulty && !is_tsdb && server_of(rq->url) < 0 && stream_chance(&universe.network, 500))
        answer_badly(ret);
    else if (faulty && ret->status != 429) /* which nobody would honour then */
        answer_get_lost(ret, server_of(rq->url) >= 0);
}

void check_secrets(struct str text, const char *where)
{
    for (int i = 0; i < universe.n_agents; i++)
        if (memmem(text.p, text.n, universe.nodes[i].token, strlen(universe.nodes[i].token)))
            violated(ORACLE_PAGES, "a secret is in %s: %.*s", where, STR_ARG(text));
    if (universe.has_kube && memmem(text.p, text.n, KUBE_TOKEN, strlen(KUBE_TOKEN)))
        violated(ORACLE_PAGES, "a token of an API server is in %s: %.*s", where, STR_ARG(text));
}

void world_on_log(struct str line)
{
    if (!sim_process || sim_process->dead)
        return;
    check_secrets(line, "the log");
    reached[REACHED_EXPIRED] += memmem(line.p, line.n, "scores expired", 14) != NULL;
    reached[REACHED_SUSPENDED] += memmem(line.p, line.n, "suspended", 9) != NULL;
    reached[REACHED_FOREIGN] += memmem(line.p, line.n, "was created by another", 22) != NULL;
    trace("a%d log: %.*s", sim_process->node, (int)line.n - 1, line.p);
}

/* ---- Agents ---- */

static void agent_write_config(struct sim_node *a)
{
    struct disk *disk = a->process ? a->process->disk : a->disk;
    BUF_AUTO(text, 16 << 10);
    unsigned n = 0;

    buf_printf(&text, "{\"clusterName\":\"c%d\",\"storagePath\":\"/u/data\",\"summaries\":[", a->cluster);

    for (unsigned i = 0; i < universe.n_scorers && !universe.has_kube; i++)
        if (a->scorers >> i & 1)
            buf_printf(&text,
                       "%s{\"name\":\"s%u\",\"scoreName\":\"s%u\",\"sourceType\":\"Prometheus\","
                       "\"sourceEndpoint\":\"http://prometheus/api/v1/"
                       "query_range\",\"sourceQuery\":\"up\","
                       "\"scoringEndpoint\":\"http://score/s%u\",\"scoringInterval\":%u}",
                       n++ ? "," : "", i, i, i, universe.interval_s);
    buf_printf(&text,
               "],\"remoteWrite\":[{\"name\":\"hub\",\"url\":\"http://tsdb/api/v1/"
               "write\",\"protocol\":\"%s\","
               "\"authorization\":{\"credentials\":\"%s\"},\"metadata_config\":{\"send\":false},"
               "\"send_health_metrics\":false,\"remote_timeout\":\"%us\",\"headers\":{\"X-"
               "Tenant\":\"%u\"},\"queue_config\":{\"max_"
               "samples_per_send\":3,"
               "\"max_spool_bytes\":4194304}}]}",
               universe.protocol, a->token, 30 + a->reloads % 2, a->reloads / RELOADS_A_TENANT);
    buf_putc(&text, '\0');
    if (buf_failed(&text) < 0)
        violated(ORACLE_MODEL, "configuration too long");
    disk_put(disk, "/u/agent.json", text.p);
}

static void agent_on_config(void *arg, const struct config *c)
{
    rw_sink_apply(((struct sim_node *)arg)->remote_write, c->section, c->storage_path);
}

static void agent_on_render(void *arg)
{
    const struct sim_node *a = arg;

    rw_sink_refresh(a->remote_write);
    if (a->kube)
        agent_kube_render(a->kube);
}

static void node_on_stopped(void *arg)
{
    loop_stop(((struct sim_node *)arg)->process->loop);
}

static bool shows_scores(const struct sim_node *a)
{
    BUF_AUTO(text, 4 << 20);

    if (!a->process || a->process->dead || !a->agent || a->wants_stop ||
        sim_now_ms <= a->process->stands_until + POLL_MS ||
        page_print(agent_state(a->agent)->page, &text) < 0)
        return false;
    buf_putc(&text, '\0');
    return buf_failed(&text) == 0 && strstr(text.p, "\ndynamic_score{");
}

/* No score is older than three of the longest rounds and one more; of two replicas one shows scores. */
static void look_at_scores(struct sim_node *a, const char *text)
{
    bool shows = false;

    for (const char *line = text; (line = strstr(line, "\ndynamic_score{")); line++) {
        unsigned score = (unsigned)strtoul(strstr(line, "} ") + 2, NULL, 10) % MAX_SCORES;
        int64_t age = sim_now_ms - universe.score_at[score];

        shows = true;
        if (age > 4000 * (int64_t)universe.interval_s + LOOP_MS)
            violated(ORACLE_PAGES, "a%d shows a score of %lld ms ago", a->id, (long long)age);
    }
    if (!shows || past_lease_was_unknown(a->cluster))
        return;
    for (int i = 0; i < universe.n_agents; i++)
        if (universe.nodes[i].cluster == a->cluster && i != a->id && shows_scores(&universe.nodes[i]))
            violated(ORACLE_PAGES, "a%d and a%d show scores", a->id, i);
}

/* What Prometheus, a browser and an operator ask for. */
static void look_at_node(struct sim_node *a)
{
    bool reload = a->wants_reload && a->agent;
    const char *page = reload ? "/-/reload" : a->looks % 4 ? "/metrics" : "/api/v1/status";
    BUF_AUTO(text, 16 << 20);
    unsigned status;

    if (a->process->dead ||
        (!reload && (sim_now_ms < a->look_at || sim_now_ms < a->process->stands_until + POLL_MS)))
        return;
    status = sim_ask(reload ? "POST" : "GET", page, &text);
    buf_putc(&text, '\0');
    if (buf_failed(&text) < 0 || status != 200)
        violated(ORACLE_PAGES, "a%d answers %s with %u: %s", a->id, page, status, text.p);
    check_secrets(buf_str(&text), page);
    if (strcmp(page, "/metrics") == 0)
        look_at_scores(a, text.p);
    if (strcmp(page, "/api/v1/status") == 0) {
        json_auto_t *tree = json_loads(text.p, 0, NULL);

        if (!tree)
            violated(ORACLE_PAGES, "a%d has a status that is no JSON: %s", a->id, text.p);
    }
    if (reload)
        return;
    a->looks++;
    a->look_at = sim_now_ms + LOOK_MS;
}

static void node_on_poll(struct timer *t)
{
    struct sim_node *a = CONTAINER_OF(t, struct sim_node, poll);
    struct loop *loop = a->process->loop;

    if (a->wants_stop) {
        if (a->hub)
            hub_stop(a->hub, node_on_stopped, a);
        else if (a->kube)
            agent_kube_stop(a->kube, node_on_stopped, a);
        else
            loop_stop(loop);
        return;
    }
    look_at_node(a);
    a->wants_reload = false;
    loop_timer_set(loop, t, mono_add(loop_now(loop), POLL_MS));
}

void node_poll(struct sim_node *a)
{
    a->poll = (struct timer){.fn = node_on_poll};
    loop_timer_set(a->process->loop, &a->poll, loop_now(a->process->loop));
}

/* As controller/cmd_agent.c does it. */
static void *agent_main(void *arg)
{
    struct sim_node *a = arg;
    struct process *p = a->process;
    struct site_options pages = {.n_listen = 1};
    char *why;

    if (loop_new(&p->loop, &clock_system) < 0)
        violated(ORACLE_MODEL, "no loop");
    a->options = (struct agent_options){.config_file = "/u/agent.json", .section = &rw_config_section};
    if (agent_new(&a->agent, p->loop, &a->options) < 0)
        violated(ORACLE_MODEL, "no agent");
    a->remote_write = rw_sink_new(a->agent);
    if (universe.has_kube)
        a->kube = agent_kube_new(
            a->agent,
            &(struct agent_kube_options){.hub_kubeconfig = "/u/hub.kubeconfig",
                                         .managed_kubeconfig = "/u/own.kubeconfig",
                                         .cluster_name = (const char *const[]){"c0", "c1"}[a->cluster],
                                         .addon_namespace = "dynamic-scoring",
                                         .leader_elect = fleet_elects(a)},
            true);
    agent_set_hooks(a->agent, &(struct agent_hooks){.config = agent_on_config,
                                                    .render = agent_on_render,
                                                    .arg = a,
                                                    .secrets = a->kube ? agent_kube_secrets(a->kube) : NULL});
    if ((a->kube ? agent_kube_start(a->kube) : agent_reload(a->agent, NULL)) < 0)
        violated(ORACLE_PAGES, "a%d rejects its configuration", a->id);
    if (web_start(&a->site, a->agent, &pages, true, &why) < 0)
        violated(ORACLE_PAGES, "a%d serves no pages: %s", a->id, why);
    node_poll(a);
    if (!p->dead)
        (void)loop_run(p->loop);
    agent_set_access(a->agent, NULL);
    a->site = site_stop(a->site, 0);
    agent_set_hooks(a->agent, NULL);
    a->kube = agent_kube_free(a->kube);
    a->remote_write = rw_sink_stop(a->remote_write, p->dead ? 0 : FLUSH_MS);
    a->agent = agent_free(a->agent);
    p->loop = loop_free(p->loop);
    return NULL;
}

static bool node_is_controller(const struct sim_node *a)
{
    return a->id >= universe.n_agents;
}

static void node_start(struct sim_node *a)
{
    a->process = xcalloc(1, sizeof(*a->process));
    a->process->node = a->id;
    a->process->disk = TAKE_PTR(a->disk);
    if (universe.has_kube)
        a->process->wall_ms = fleet_clock_error_ms(a);
    else if (!universe.healed)
        a->process->wall_ms = (int64_t)stream_below(&universe.faults, 20 * 60000) - 10 * 60000;
    /* A clock without a battery begins behind where it was, whoever sets it later. */
    if (!universe.has_kube && !universe.healed && a->life > 0 && a->cut_life == a->life &&
        stream_chance(&universe.clocks, 750))
        a->process->wall_ms = -10 * 60000;
    /* Only a folder that is empty: newer samples overtake those in one that cannot be opened. Nor that of a
     * replica: if it leads twice before it is opened, nobody knows the series of the first time. */
    if (a->life == 0 && !node_is_controller(a) && !fleet_elects(a) && stream_chance(&universe.locks, 500)) {
        a->locked_until = sim_now_ms + (int64_t)stream_below(&universe.locks, 120000);
        disk_lock(a->process->disk, a->locked_until);
    }
    a->wants_stop = a->wants_reload = false;
    a->not_before = 0;
    if (++a->life == MAX_LIVES)
        violated(ORACLE_MODEL, "more than %d lives", MAX_LIVES);
    a->since = sim_now_ms;
    if (universe.has_kube)
        fleet_write_kubeconfigs(a);
    if (!node_is_controller(a))
        agent_write_config(a);
    trace("a%d starts", a->id);
    process_start(a->process, node_is_controller(a) ? controller_main : agent_main, a);
}

/* The process has ended: what it leaves is for the next. */
static void node_bury(struct sim_node *a)
{
    struct process *p = a->process;

    a->disk_failed = a->disk_failed || disk_has_failed(p->disk);
    a->unreadable = a->unreadable || disk_was_unreadable(p->disk);
    if (!p->dead)
        a->died_at[a->life] = sim_now_ms;
    a->forgot |= a->locked_until && a->died_at[a->life] - SAVED_MS < disk_locked_at(p->disk);
    if (a->left)
        p->disk = disk_free(p->disk);
    a->disk = a->left ? TAKE_PTR(a->left) : p->disk;
    free(p);
    a->process = NULL;
    a->up_at = sim_now_ms + (universe.healed ? 0 : (int64_t)stream_below(&universe.faults, 90000));
}

static void node_kill(struct sim_node *a, bool power_cut)
{
    a->process->dead = true;
    a->was_killed = true;
    a->died_at[a->life] = sim_now_ms;
    if (power_cut)
        a->cut_life = a->life;
    a->left = disk_after(a->process->disk, power_cut, &universe.disk);
    reached[power_cut ? REACHED_POWER_CUT : REACHED_KILL]++;
    trace("a%d %s", a->id, power_cut ? "loses power" : "is killed");
}

void world_on_kill_in_call(void)
{
    reached[REACHED_KILL_IN_CALL]++;
    node_kill(&universe.nodes[sim_process->node], stream_chance(&universe.faults, 500));
}

/* ---- Faults ---- */

static void fault_reload(struct sim_node *a)
{
    unsigned before = a->scorers;

    reached[REACHED_RELOAD]++;
    if (node_is_controller(a))
        return;
    if (!universe.has_kube)
        a->scorers = (unsigned)stream_below(&universe.faults, 1u << universe.n_scorers);
    a->reloads++;
    reached[REACHED_MOVED] += a->reloads % RELOADS_A_TENANT == 0;
    reached[REACHED_REMOVED] += (before & ~a->scorers) != 0;
    agent_write_config(a);
    a->wants_reload = true;
    trace("a%d gets scorers %u", a->id, a->scorers);
}

static void fault_clock(struct sim_node *a)
{
    if (universe.has_kube) {
        fleet_rotate(a);
        return;
    }
    a->right_ms = (int64_t)stream_below(&universe.faults, 20 * 60000) - 10 * 60000;
    a->process->wall_ms = a->right_ms;
    if (stream_chance(&universe.clocks, 250)) {
        a->process->wall_ms += DAY_MS;
        a->ahead_until = sim_now_ms + 1 + (int64_t)stream_below(&universe.clocks, 60000);
        a->times_ahead++;
        reached[REACHED_CLOCK_AHEAD]++;
    }
    reached[REACHED_CLOCK_JUMP]++;
    trace("a%d clock is wrong by %lld ms", a->id, (long long)a->process->wall_ms);
}

static void clock_correct(struct sim_node *a)
{
    if (a->ahead_until == 0 || sim_now_ms < a->ahead_until)
        return;
    a->ahead_until = 0;
    if (a->process)
        a->process->wall_ms = a->right_ms;
    trace("a%d clock is corrected", a->id);
}

/* As SIGSTOP does it, or a machine that is suspended; what has left goes on. */
static void fault_standstill(struct sim_node *a)
{
    if (a->process->departing)
        return;
    a->process->stands_until = sim_now_ms + (int64_t)stream_below(&universe.faults, 300000);
    a->stood_life = a->life;
    reached[REACHED_STANDSTILL]++;
    trace("a%d stands still until %.1f", a->id, (double)a->process->stands_until / 1000);
}

static void fault_node(struct sim_node *a)
{
    uint64_t what = stream_below(&universe.faults, 1000);

    if (!a->process || !a->process->loop || a->process->dead)
        return;
    if (what < f.kills) {
        node_kill(a, stream_chance(&universe.faults, 500));
    } else if (what < 2 * f.kills) {
        a->process->die_in = 1 + (unsigned)stream_below(&universe.faults, 60);
    } else if (what < 3 * f.kills) {
        a->wants_stop = true;
        reached[REACHED_STOP]++;
    } else if (what < 650) {
        fault_reload(a);
    } else if (what < 720 && universe.has_kube && kube_must_be_seen()) {
        return;
    } else if (what < 720) {
        fault_standstill(a);
    } else if (what < 800) {
        a->partition_until = sim_now_ms + (int64_t)stream_below(&universe.faults, 300000);
        reached[REACHED_PARTITION]++;
        trace("a%d is cut off until %.1f", a->id, (double)a->partition_until / 1000);
    } else {
        fault_clock(a);
    }
    disk_set_faults(a->process->disk, &universe.disk, f.bad_disk);
}

void node_wake(struct sim_node *a)
{
    if (a->process)
        a->process->stands_until = sim_now_ms;
}

static void nodes_go_on(void)
{
    for (int i = 0; i < universe.n_nodes; i++) {
        struct sim_node *a = &universe.nodes[i];

        if (a->process && a->process->dead) {
            if (a->process->loop)
                loop_stop(a->process->loop);
            sim_finish(a->process);
        }
        if (a->process && a->process->strands == 0)
            node_bury(a);
        if (!a->process && sim_now_ms >= a->up_at)
            node_start(a);
        clock_correct(a);
    }
}

static void fault(void)
{
    uint64_t what = stream_below(&universe.faults, 1000);

    f.next_fault = sim_now_ms + (int64_t)stream_below(&universe.faults, 60000);
    if (universe.has_kube && what < 250)
        fleet_turn();
    else if (universe.has_kube && what < 450)
        kube_turn();
    else if (what < (universe.has_kube ? 550 : 400))
        tsdb_turn();
    else
        fault_node(&universe.nodes[stream_below(&universe.faults, (uint64_t)universe.n_nodes)]);
}

/* After each step of any strand. */
static void between_steps(void)
{
    nodes_go_on();
    tsdb_tick();
    if (universe.has_kube) {
        kube_tick();
        fleet_tick();
    }
    if (!universe.healed && sim_now_ms >= f.next_fault)
        fault();
}

/* ---- A run ---- */

/* Time passes in small steps, so that an agent that is down starts although no strand runs. */
static void pass(int64_t until)
{
    while (sim_now_ms < until) {
        between_steps();
        sim_run(sim_now_ms + 500, between_steps);
    }
}

static void heal(void)
{
    universe.healed = true;
    tsdb_heal();
    trace("everything heals");
    for (int i = 0; i < universe.n_nodes; i++) {
        struct sim_node *a = &universe.nodes[i];

        a->partition_until = a->up_at = 0;
        a->scorers |= 1;
        if (a->process && !a->process->dead) {
            a->process->die_in = 0;
            a->process->stands_until = sim_now_ms;
            disk_set_faults(a->process->disk, NULL, 0);
            if (!node_is_controller(a))
                agent_write_config(a);
            a->wants_reload = true;
        } else if (a->disk) {
            disk_set_faults(a->disk, NULL, 0);
        }
    }
    if (universe.has_kube) {
        kube_heal();
        fleet_heal();
    }
}

static void check_end(void)
{
    tsdb_check_end();
    if (universe.has_kube)
        fleet_check_end();
    for (int i = 0; i < universe.n_agents; i++) {
        static const char key[] = "\"samplesPending\":";
        BUF_AUTO(text, 64 << 10);
        const char *found = NULL;

        if (fleet_elects(&universe.nodes[i]) && !fleet_leads(&universe.nodes[i]))
            continue;
        rw_sink_json(universe.nodes[i].remote_write, &text);
        buf_putc(&text, '\0');
        if (buf_failed(&text) == 0)
            found = strstr(text.p, key);
        if (!found || strtoull(found + strlen(key), NULL, 10) > 64)
            violated(ORACLE_LEDGER, "a%d: samples are still pending: %s", i, cstr(text.p));
        if (scorer_state(agent_state(universe.nodes[i].agent)->scorers[0]) != SCORER_OK)
            violated(ORACLE_PAGES, "a%d: its scorer has not recovered", i);
    }
}

int64_t world_run(uint64_t seed)
{
    struct stream setup, replicas;

    stream_init(&setup, seed, "setup");
    stream_init(&replicas, seed, "replicas");
    stream_init(&universe.faults, seed, "faults");
    stream_init(&universe.network, seed, "network");
    stream_init(&universe.disk, seed, "disk");
    stream_init(&universe.answers, seed, "answers");
    stream_init(&universe.locks, seed, "locks");
    stream_init(&universe.clocks, seed, "clocks");
    stream_init(&universe.past, seed, "past");
    universe.has_kube = stream_chance(&setup, 300) || planted >= PLANT_FIRST_WITH_KUBE;
    universe.has_replicas = universe.has_kube && stream_chance(&replicas, 500);
    universe.has_two_servers = universe.has_kube && stream_chance(&universe.past, 600);
    universe.has_placements = universe.has_kube && stream_chance(&universe.past, 700);
    universe.n_clusters = !universe.has_kube && stream_chance(&setup, 500) ? AGENTS
                          : universe.has_kube                              ? 2
                                                                           : 3;
    universe.n_agents = universe.n_clusters + universe.has_replicas;
    universe.n_nodes = universe.n_agents + (universe.has_kube ? CONTROLLERS : 0);
    universe.n_scorers = universe.n_agents == AGENTS ? 1 : SCORERS;
    universe.n_scores = universe.has_kube ? FEW_SCORES : MAX_SCORES;
    universe.more_series = universe.n_agents == AGENTS ? MORE_SERIES : 0;
    universe.interval_s = universe.n_agents == AGENTS ? 60 : 30;
    universe.protocol = (const char *const[]){"1.0", "1.0", "2.0", "auto", "vm"}[stream_below(&setup, 5)];
    f.bad_network = (unsigned)stream_below(&setup, 2) * (universe.has_kube ? 20 : 100);
    f.bad_disk = stream_chance(&setup, 300) ? 20 : 0;
    f.kills = (unsigned)stream_below(&setup, 3) * 90;
    for (int i = 0; i < universe.n_nodes; i++) {
        struct sim_node *a = &universe.nodes[i];

        a->id = i;
        a->cluster = i < universe.n_clusters ? i : 0;
        a->scorers = (1u << universe.n_scorers) - 1;
        a->disk = disk_new();
        (void)snprintf(a->token, sizeof(a->token), "token-of-a%d-%08llx", i,
                       (unsigned long long)(seed * 2654435761u));
    }
    if (universe.has_kube)
        fleet_set_up(seed);
    pass(FAULTS_MS);
    heal();
    pass(FAULTS_MS + HEAL_MS);
    check_end();
    trace("end");
    return sim_now_ms;
}
