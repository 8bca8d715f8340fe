"""Each query of the dashboards finds series in a real Prometheus and a real VictoriaMetrics, whichever way the scores and
the agents' own metrics came there, and counts nothing twice."""

import contextlib
import dataclasses
import math
import time
import urllib.parse

import pytest
from lib import dashboard
from lib.agent import running_agent, summary
from lib.client import call
from lib.controller import running_controller
from lib.decide import deciding
from lib.fake import plain, results, running_fake, series
from lib.hub import agent_flags, agent_namespace_of, clean_hub, static_scorer
from lib.optimizer import running_optimizer
from lib.prometheus import running_prometheus
from lib.scorers import source
from lib.tsdb import Tsdb
from lib.wait import LONG, eventually, wait_until
from lib.watcher import CLAIMS, running_watcher
from lib.work import FakeWorkAgent

SCRAPED, PUSHED, BOTH, ENDED = "c1", "c2", "c3", "c4"
NODES = {f"n{i}": {"node": f"n{i}", "namespace": "shop", "app": "web", "device": "gpu0"} for i in (1, 2, 3)}
NOT_INSIDE = ("dynamic_scoring_hub_", "cluster_cpu_free", "cluster_memory_free", "source_query", "last_over_time")

# ---- What runs ----


def scripted(fake):
    """Scores of three nodes, one of them above 100, and each way in which a round or a result can go wrong."""
    good = [NODES["n1"], 41.5, NODES["n2"], 150, NODES["n3"], -7]
    fake.on("/healthz", plain("ok"))
    fake.on("/cpu", results(*good))
    fake.on("/odd", results({"node": "x" * 300}, 1, {"node": "n1"}, "not a number", {"node": "n2"}, 3))
    fake.on("/fails", *[results(*good)] * 2, plain("overloaded", 503))
    fake.on("/query", series({"node": "n1"}, warnings=["a part of the data is missing"]))
    fake.on("/containers", containers)
    fake.on("/free", plain("cluster_cpu_free 3.5\ncluster_memory_free 8e9\n"))


def containers(connection, request):
    used = time.time() / 50
    plain(f'container_cpu_usage_seconds_total{{namespace="shop",pod="web-0",container="web"}} {used}\n')(
        connection, request
    )


def scorers(fake):
    return [
        summary("cpu", f"{fake.url}/cpu", source=f"{fake.url}/query"),
        summary("odd", f"{fake.url}/odd"),
        summary("fails", f"{fake.url}/fails"),
    ]


def endpoints(cluster, prometheus, victoria):
    """To both, with the agent's own metrics. The rule makes the name of one series invalid."""
    more = {
        "send_health_metrics": True,
        "external_labels": {"cluster": cluster},
        "write_relabel_configs": [
            {"source_labels": ["ds_node"], "regex": "x+", "target_label": "__name__", "replacement": "not a name"}
        ],
    }
    return [
        {"name": name, "url": f"{url}/api/v1/write", **more}
        for name, url in (("prometheus", prometheus.url), ("victoria", victoria.url("")))
    ]


def job(name, *targets, path="/metrics"):
    """targets: (url, cluster), or (url, None) for those without the label."""
    configs = [{"targets": [url.removeprefix("http://")], "labels": {"cluster": c} if c else {}} for url, c in targets]
    return {"job_name": name, "metrics_path": path, "static_configs": configs}


def on_the_hub(hub, fake):
    for cluster in (SCRAPED, PUSHED, BOTH):
        hub.add_cluster(cluster)
    hub.configure(adjustments=[{"name": "penalty", "clusterName": "*", "scoreName": "cpu", "add": -1}])
    for name in ("cpu", "odd", "fails"):
        scoring = {"path": f"/{name}", "params": {"name": name, "interval": 1}}
        hub.apply_scorer(name, static_scorer(fake.url, name) | {"scoring": scoring, "source": source(fake.url, path="/query")})
    hub.apply_scorer("away", {"configURL": f"{fake.url}/missing", "configSyncMode": "Full", "description": ""})


GPUS = {  # two workloads and room for one of them
    "clusters": {"placed": {"3g.48gb": 2}},
    "workloads": {"app01": 2, "app02": 2},
    "scores": {("app01", "placed", "3g.48gb"): 60, ("app02", "placed", "3g.48gb"): 10},
}


def plan_twice(optimizer, request, prometheus):
    """So that what is counted has increased between two scrapes. Requests are counted last, once all is written."""
    for n in (1, 2):
        planned = optimizer.post("/optimize", request)
        assert planned.status == 200 and planned.json["applied"], planned.text
        prometheus.wait_query(f'dynamic_scoring_optimizer_requests_total{{code="200"}} >= {n}', "the request is counted")


@dataclasses.dataclass
class World:
    stores: dict  # name: URL
    both: object  # the agent c3
    since: int  # when its Prometheus started: graphs show what has happened since, however slow the tests are


@pytest.fixture(scope="module", name="world")
def stores_of_a_fleet(api_server, tmp_path_factory):
    """c1 is scraped and gets its scorers from the hub; c2 writes to the hub's stores; c3 does both; c4 has ended."""
    with contextlib.ExitStack() as stack:
        run = stack.enter_context
        fake, hub = run(running_fake()), clean_hub(api_server)
        scripted(fake)
        on_the_hub(hub, fake)
        controller = run(running_controller(hub.kube))
        stack.callback(hub.kube.delete, f"{CLAIMS}/charted")
        watcher = run(running_watcher(hub.kube, f"--namespace={SCRAPED}", "--claim=charted"))
        decide = run(deciding(hub, **GPUS))
        optimizer = run(running_optimizer(hub.kube.kubeconfig(), "--write-namespace=default"))
        optimizer.wait_ready()
        run(FakeWorkAgent(hub, {SCRAPED: (hub.kube, agent_namespace_of(SCRAPED))}))
        scraped = run(running_agent({}, *agent_flags(hub, SCRAPED)))
        ended = run(running_agent({"clusterName": ENDED, "summaries": scorers(fake)}))
        both = run(running_agent({"clusterName": BOTH}, f"--storage.path={damaged_spool(tmp_path_factory)}"))
        victoria = Tsdb("victoria-metrics", tmp_path_factory.mktemp("victoria"))
        victoria.command.append("-search.latencyOffset=0s")
        run(victoria)
        since = math.floor(time.time())
        prometheus = run(
            running_prometheus(
                job("agent", (scraped.url, SCRAPED), (both.url, BOTH), (ended.url, ENDED)),
                job("controller", (controller.url, None)),
                job("optimizer", (optimizer.url, None)),
                job("policy-watcher", (watcher.url, SCRAPED)),
                job("free", (fake.url, SCRAPED), path="/free"),
                job("containers", (fake.url, SCRAPED), path="/containers"),
                remote_write=[{"url": victoria.url(), "queue_config": {"batch_send_deadline": "1s"}}],
                receiver=True,
            )
        )
        inside = run(running_prometheus(job("inside", (scraped.url, None), (watcher.url, None))))
        config = {"summaries": scorers(fake)}
        run(running_agent({"clusterName": PUSHED, **config, "remoteWrite": endpoints(PUSHED, prometheus, victoria)}))
        both.apply({"clusterName": BOTH, **config, "remoteWrite": endpoints(BOTH, prometheus, victoria)})
        prometheus.wait_query("dynamic_scoring_hub_distribution_duration_seconds_count", "the controller is scraped")
        plan_twice(optimizer, decide.request(), prometheus)
        hub.apply_scorer("late", static_scorer(fake.url, "late"))
        prometheus.wait_query(f'dynamic_score{{cluster="{ENDED}"}}', "c4 had scores")
        ended.process.end()
        yield World({"prometheus": prometheus.url, "victoria": victoria.url(""), "inside": inside.url}, both, since)


def damaged_spool(tmp_path_factory):
    """With a segment of one of the endpoints that cannot be read."""
    folder = tmp_path_factory.mktemp("spool")
    segment = folder / "remote-write" / "prometheus" / "000000000001.seg"
    segment.parent.mkdir(parents=True)
    segment.write_bytes(b"not a segment" * 10)
    return folder


# ---- Queries ----


def get(url, path, **arguments):
    answer = call("GET", f"{url}/api/v1/{path}?" + urllib.parse.urlencode({**arguments, "nocache": 1}))
    assert answer.status == 200, f"{arguments}: {answer.text}"
    return answer.json["data"]


def ask(url, expr):
    return get(url, "query", query=expr)["result"]


def numbers(url, target, expr, since):
    """[(labels, [number])], as the panel gets them."""
    if target.get("instant"):
        found = [(s["metric"], [s["value"]]) for s in ask(url, expr)]
    else:
        span = {"start": since, "end": math.floor(time.time()), "step": 2}
        found = [(s["metric"], s["values"]) for s in get(url, "query_range", query=expr, **span)["result"]]
    # Of a histogram without observations, quantiles are NaN.
    return [(labels, [float(v) for _, v in values if not math.isnan(float(v))]) for labels, values in found]


def chosen(shown, url, **given):
    """The variables as they are when the dashboard is opened: of a score, the first that is found."""
    values = dashboard.first_choice(shown)
    for name, variable in dashboard.variables(shown).items():
        if variable["type"] == "query" and name not in given:
            selector, label = (dashboard.replace(text, values | given) for text in dashboard.variable_query(variable))
            found = get(url, f"label/{label}/values", **{"match[]": selector})
            assert found or values[name] is not None, f"{name}: {selector} has no {label}"
            values[name] = values[name] or sorted(found)[0]
    return values | given


def problem_of(title, target, values, url, since, absent):
    expr = dashboard.replace(target["expr"], values)
    found = [labels for labels, n in numbers(url, target, expr, since) if n]
    if not found:
        return f"{title}: no series: {expr}"
    named = set(dashboard.labels_of_legend(dashboard.replace(target.get("legendFormat", ""), values))) - set(absent)
    lacking = [] if "source_query" in target["expr"] else [n for n in named if not any(n in labels for labels in found)]
    return f"{title}: no series has {lacking}: {expr}" if lacking else None


def check(shown, url, since, left_out=(), absent=(), **given):
    """Each query finds series, of some score if one is to be chosen, that have the labels of its legend."""
    first = chosen(shown, url, **given)
    scores = [first | {"score_name": score} for score in ("cpu", "odd", "fails")] if "score_name" in first else [first]
    targets = [(panel["title"], target) for panel in dashboard.panels(shown) for target in panel["targets"]]
    targets += [(one["name"], one) for one in shown["annotations"]["list"]]
    asked = [(title, target) for title, target in targets if not any(word in target["expr"] for word in left_out)]
    found = [[problem_of(title, target, values, url, since, absent) for values in scores] for title, target in asked]
    problems = [p[0] for p in found if None not in p]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("store", ["prometheus", "victoria"])
@pytest.mark.parametrize("name", dashboard.NAMES)
def test_each_query_finds_series(world, name, store):
    eventually(lambda: check(dashboard.load(name), world.stores[store], world.since), LONG)


@pytest.mark.parametrize("name", ["fleet", "scorer", "agent"])
def test_a_prometheus_inside_the_cluster(world, name):
    """Its series other than scores have no label of the cluster, and no remote write leads to c1's."""
    left_out = (*NOT_INSIDE, "remote_write", "remote_storage")
    shown = dashboard.load(name)
    eventually(lambda: check(shown, world.stores["inside"], world.since, left_out, ["cluster"], cluster=SCRAPED), LONG)


# ---- Nothing counts twice ----


def value_of(world, store, name, title, letter="A", **given):
    """The first number that a panel shows now."""
    shown, url = dashboard.load(name), world.stores[store]
    panel = next(p for p in dashboard.panels(shown) if p["title"] == title)
    target = next(t for t in panel["targets"] if t["refId"] == letter)
    return float(ask(url, dashboard.replace(target["expr"], chosen(shown, url, **given)))[0]["value"][1])


@pytest.mark.parametrize("store", ["prometheus", "victoria"])
def test_both_ways_at_once_count_once(world, store):
    url = world.stores[store]
    wait_until(
        lambda: len(ask(url, f'rate(dynamic_scoring_rounds_total{{cluster="{BOTH}",result="success",score_name="cpu"}}[4m])')) == 2,
        "c3's metrics have come both ways",
        LONG,
    )
    assert len(ask(url, f'dynamic_score{{ds_cluster="{BOTH}",ds_score_name="cpu"}}')) == 6
    of_cpu = {"cluster": BOTH, "score_name": "cpu"}
    assert value_of(world, store, "scorer", "Score series", **of_cpu) == 3
    assert value_of(world, store, "fleet", "Score by cluster", **of_cpu, aggregation="sum") == 184.5
    assert value_of(world, store, "scorer", "Source series", **of_cpu) == 1
    assert value_of(world, store, "scorer", "Clusters that score", cluster=".*", score_name="cpu") == 3
    assert value_of(world, store, "agent", "Scorers", cluster=BOTH) == 3
    # A round each second: two ways that count twice would give twice as many as the faster of them.
    fastest = f'max(rate(dynamic_scoring_rounds_total{{cluster="{BOTH}",score_name="cpu"}}[4m]))'
    assert value_of(world, store, "scorer", "Rounds", **of_cpu) < 1.5 * float(ask(url, fastest)[0]["value"][1])
