"""The recipes in charts/samples/recipes, applied as they are: kubectl, the controller, an agent on a good, a bad and a bare cluster with a
Prometheus each, `scorer mean`, and Open Cluster Management's placement controller, which picks the good one. Prometheus has series as
the exporters' documentation has them, on the bare cluster none; test_recipes_on_real_exporters.py asks real exporters where they
can be had."""

import contextlib
import urllib.parse

import pytest
import yaml

from lib.agent import running_agent
from lib.client import call
from lib.fake import plain, running_fake
from lib.helm import CHART, HUB_NAMESPACE
from lib.hub import agent_flags, agent_namespace_of
from lib.kube import SCORES
from lib.ocm import SETS, decisions_of, placement_controller, put_global_set
from lib.process import environment
from lib.prometheus import running_prometheus
from lib.recorded import BAD, GOOD, series
from lib.scoring_api import running_scorer
from lib.wait import LONG, wait_until
from lib.work import FakeWorkAgent

RECIPES = CHART.parent / "samples" / "recipes"
PAGES = {"good": GOOD, "bad": BAD, "bare": ()}
PROMETHEUS, SCORER = "/api/v1/query_range", "/scoring"
OCM = f"apis/cluster.open-cluster-management.io/{{}}/namespaces/{HUB_NAMESPACE}/{{}}"
TOKEN = {"name": "dynamic-scoring-agent-token", "key": "token"}
# {file: {item: (of the good cluster, of the bad one)}}; each within a point, as the mean of a rate is not exact.
WITHOUT_FALLBACK = ("error_budget",)  # where a service does not run, nothing speaks against it
FREE = {"free_cpu": (60, -80), "free_memory": (50, -75)}
EXPECTED = {
    "free": FREE,
    "free-openshift": FREE,
    "requests": {"unrequested_cpu": (50, -75), "unrequested_memory": (50, -75)},
    "pending": {"pending_pods": (80, -60)},
    "gpu": {"free_gpu": (60, -80), "free_gpu_memory": (50, -80)},
    "power": {"node_power": (60, -50)},
    "cost": {"cost": (36, -64)},
    "latency": {"latency": (94, -60)},
    "custom-resource": {"queued_workloads": (90, -50)},
    "error-budget": {"error_budget": (100, -49)},
}


def objects_of(recipe, kind):
    found = yaml.safe_load_all((RECIPES / f"{recipe}.yaml").read_text())
    return [o for o in found if o["kind"] == kind]


def forward(url):
    """A reply of a fake that is a proxy: that of the server at this URL, whatever host was asked for."""

    def send(connection, request):
        parts = urllib.parse.urlsplit(request.path)
        kind = {k: v for k, v in request.headers.items() if k.lower() == "content-type"}
        answer = call(request.method, f"{url}{parts.path}?{parts.query}", request.body, **kind)
        plain(answer.body, answer.status, Content_Type=answer.headers["Content-Type"])(connection, request)

    return send


@contextlib.contextmanager
def running_cluster(hub, name, scorer):
    """An agent whose proxy leads to the cluster's own Prometheus and scoring API, by whatever names the recipes have for them."""
    with running_prometheus(samples=series(*PAGES[name])) as prometheus, running_fake() as proxy:
        proxy.on(PROMETHEUS, forward(prometheus.url))
        proxy.on(SCORER, forward(scorer))
        with running_agent({}, *agent_flags(hub, name), env=environment(HTTP_PROXY=proxy.url)):
            yield proxy


@pytest.fixture(name="fleet")
def three_clusters(hub, start_controller, tmp_path):
    """{cluster: its proxy}"""
    with contextlib.ExitStack() as stack:
        put_global_set(hub)
        stack.callback(remove_all, hub)
        hub.put(OCM.format("v1beta2", "managedclustersetbindings"), "ManagedClusterSetBinding", "global", {"clusterSet": "global"})
        for name in PAGES:
            hub.add_cluster(name)
            hub.add_namespace(agent_namespace_of(name))
        stack.enter_context(FakeWorkAgent(hub, {name: (hub.kube, agent_namespace_of(name)) for name in PAGES}))
        stack.enter_context(placement_controller(hub.kube))
        start_controller()
        hub.configure()
        scorer = stack.enter_context(running_scorer(tmp_path))
        yield {name: stack.enter_context(running_cluster(hub, name, scorer.url)) for name in PAGES}


def remove_all(hub):
    for kind, version in (("placements", "v1beta1"), ("placementdecisions", "v1beta1"), ("managedclustersetbindings", "v1beta2")):
        hub.kube.call("DELETE", OCM.format(version, kind))
    hub.kube.delete(f"{SETS}/global")


def items_of(hub, cluster, score_name):
    found = hub.kube.find(f"{SCORES.format(cluster)}/{score_name.replace('_', '-')}") or {}
    return {s["name"]: s.get("value", 0) for s in found.get("status", {}).get("scores", [])}


def check_items(hub, expected):
    for name, (good, bad) in expected.items():
        for cluster, value in (("good", good), ("bad", bad)):
            found = wait_until(lambda c=cluster, n=name: items_of(hub, c, n), f"{cluster} has {name}", LONG)
            assert list(found) == [name], "the item has the same name on all clusters"
            assert abs(found[name] - value) <= 1, (cluster, name, found)
        if name not in WITHOUT_FALLBACK:
            wait_until(lambda n=name: items_of(hub, "bare", n) == {n: -100}, f"the bare cluster has -100 for {name}", LONG)


def apply(hub, path):
    done = hub.kubectl("apply", "-f", path)
    assert done.returncode == 0, done.stderr


def test_each_recipe_prefers_the_good_cluster(hub, fleet):
    assert sorted(EXPECTED) == sorted(f.stem for f in RECIPES.glob("*.yaml") if not f.stem.endswith("-values"))
    for recipe, expected in EXPECTED.items():
        if recipe == "free-openshift":
            continue  # names those of `free`, and speaks HTTPS
        apply(hub, RECIPES / f"{recipe}.yaml")
        check_items(hub, expected)
        for scorer in objects_of(recipe, "DynamicScorer"):
            hub.wait_scorer(scorer["metadata"]["name"], "Valid", "True", "Valid")
        [placement] = objects_of(recipe, "Placement")
        name = placement["metadata"]["name"]
        wait_until(lambda n=name: decisions_of(hub, HUB_NAMESPACE, n) == ["good"], f"{name} picks the good cluster", LONG)


def test_the_platform_of_openshift(hub, fleet, tmp_path):
    """By HTTP here, with the token that the chart makes; its nodes are series."""
    for cluster in fleet:
        secrets = f"api/v1/namespaces/{agent_namespace_of(cluster)}/secrets"
        hub.kube.apply(secrets, TOKEN["name"], {"stringData": {TOKEN["key"]: "of-the-platform"}})
    changed = tmp_path / "recipe.yaml"
    changed.write_text((RECIPES / "free-openshift.yaml").read_text().replace("https://thanos", "http://thanos"))
    apply(hub, changed)
    check_items(hub, EXPECTED["free-openshift"])
    for cluster, proxy in fleet.items():
        asked = proxy.requests(PROMETHEUS)
        assert asked and {r.token for r in asked} == {"Bearer of-the-platform"}
        nodes = {result["metric"]["node"] for result in proxy.requests(SCORER)[0].json["data"]}
        assert nodes == (set() if cluster == "bare" else {"n1:9100", "n2:9100"})


@pytest.mark.parametrize("recipe", EXPECTED)
def test_each_placement_follows_the_recipes_items(recipe):
    """And Steady, so that a workload does not hop for a point."""
    scorers = objects_of(recipe, "DynamicScorer")
    [placement] = objects_of(recipe, "Placement")
    assert placement["spec"]["prioritizerPolicy"]["mode"] == "Exact"
    *scores, steady = placement["spec"]["prioritizerPolicy"]["configurations"]
    assert (steady["weight"], steady["scoreCoordinate"]) == (1, {"type": "BuiltIn", "builtIn": "Steady"})
    assert sum(s["weight"] for s in scores) == 10
    named = [s["scoreCoordinate"]["addOn"] for s in scores]
    expected = [s["spec"]["scoring"]["params"]["name"] for s in scorers]
    assert [(n["resourceName"], n["scoreName"]) for n in named] == [(e.replace("_", "-"), e) for e in expected]
    assert expected == list(EXPECTED[recipe])
