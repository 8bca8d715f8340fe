"""The CRDs accept valid objects, reject invalid ones with a message that names the field, and define columns and
explanations for kubectl."""

import pathlib
import re

import pytest
import yaml

from lib.hub import CONFIG, CONFIGS, SCORERS, Hub
from lib.kube import DOMAIN, running_kube
from lib.process import ROOT

CRS = pathlib.Path(__file__).parent / "crs"
GOOD, BAD = (sorted((CRS / which).glob("*.yaml")) for which in ("good", "bad"))
# What the reference implementation's CRDs take as it is, of the good ones.
OF_REFERENCE = [
    "config.yaml",
    "config_masks.yaml",
    "config_without_spec.yaml",
    "example_performance.yaml",
    "example_powerconsumption.yaml",
    "external_llm.yaml",
    "own_fields.yaml",
    "sample_scorer.yaml",
    "sample_scorer_by_skupper.yaml",
    "simple_prediction.yaml",
]
STATUS = {
    "healthStatus": "Active",
    "scoreName": "sample_my_score",
    "interval": "30s",
    "configSource": "API",
    "clusters": {"selected": 5, "upToDate": 4, "applied": 4, "scoring": 3, "failing": 1, "empty": 0, "suspended": 0,
        "waiting": 0, "silent": 1},
    "conditions": [
        {
            "type": "Ready",
            "status": "False",
            "reason": "Failing",
            "message": "it fails on one cluster",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        },
        {
            "type": "ConfigSynced",
            "status": "False",
            "reason": "HTTPStatus",
            "message": "HTTP 500",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        },
    ],
}


@pytest.fixture(scope="module", autouse=True)
def nothing_of_former_tests(api_server):
    """kubectl warns about objects that it did not create."""
    for path in (SCORERS, CONFIGS):
        Hub(api_server).drop(path)


def name_of(file):
    return file.stem


def refusal(file):
    """A pattern of the message in a file's first line. The value is `*` there: older servers name its type, and newer
    ones quote it, or leave it out."""
    message = file.read_text().split("\n")[0].removeprefix("# message: ")
    return re.escape(message).replace(re.escape("Invalid value: *: "), "Invalid value: (.*: )?")


def dry_run(hub, file):
    return hub.kubectl("apply", "--dry-run=server", "--filename", file)


def columns(hub, *args):
    """The table of one object as {heading: text}."""
    done = hub.kubectl("get", *args)
    assert done.returncode == 0, done.stderr
    head, row = done.stdout.rstrip("\n").split("\n")
    starts = [i for i in range(len(head)) if head[i] != " " and (i == 0 or head[i - 1] == " ")]
    ends = [*starts[1:], None]
    return {head[a:b].strip(): row[a:b].strip() for a, b in zip(starts, ends)}


@pytest.mark.parametrize("file", GOOD, ids=name_of)
def test_good_ones_are_taken(api_server, file):
    done = dry_run(Hub(api_server), file)
    assert done.returncode == 0, done.stderr
    assert "(server dry run)" in done.stdout
    assert "Warning" not in done.stderr


@pytest.mark.parametrize("file", BAD, ids=name_of)
def test_bad_ones_are_refused_with_a_reason(api_server, file):
    done = dry_run(Hub(api_server), file)
    assert done.returncode == 1, done.stdout
    assert re.search(refusal(file), done.stderr), done.stderr
    assert "estimated" not in done.stderr and "no such key" not in done.stderr


def test_columns_of_scorers(hub):
    assert hub.kubectl("apply", "--filename", CRS / "good" / "sample_scorer.yaml").returncode == 0
    hub.patch(f"{SCORERS}/sample-scorer/status", {"status": STATUS})
    narrow = columns(hub, "dscorer")
    assert list(narrow) == "NAME READY REASON HEALTH CLUSTERS SCORING FAILING EMPTY INTERVAL AGE MESSAGE".split()
    assert narrow.pop("AGE")
    assert list(narrow.values()) == [
        "sample-scorer", "False", "Failing", "Active", "5", "3", "1", "0", "30s", "it fails on one cluster"
    ]
    wide = columns(hub, "dynamicscorers", "--output=wide")
    more = {
        "HEALTH-CHECK": "", "SYNCED": "False", "SCORE": "sample_my_score", "SUSPENDED": "0", "WAITING": "0", "SILENT": "1",
        "UP-TO-DATE": "4", "MODE": "Full", "SOURCE": "API",
    }
    assert {c: wide[c] for c in wide if c not in narrow and c != "AGE"} == more


def test_columns_of_configs(hub):
    hub.configure()
    ready = {**STATUS["conditions"][0], "message": "one cluster is refused"}
    counts = {"managed": 300, "upToDate": 299, "behind": 1, "failing": 1, "reporting": 200}
    path = SCORERS.replace("dynamicscorers", "dynamicscoringconfigs") + f"/{CONFIG}/status"
    hub.patch(path, {"status": {"clusters": counts, "conditions": [ready], "summariesBytes": 1234}})
    wide = columns(hub, "dscconfig")
    assert list(wide) == "NAME READY REASON CLUSTERS UP-TO-DATE APPLIED REPORTING FAILING AGE MESSAGE".split()
    assert [wide[c] for c in ("READY", "CLUSTERS", "UP-TO-DATE", "FAILING")] == ["False", "300", "299", "1"]
    assert wide["MESSAGE"] == "one cluster is refused"


def test_both_kinds_in_one_list(hub):
    hub.configure()
    hub.apply_scorer("a", {"configURL": "http://a.example/config", "configSyncMode": "Full"})
    done = hub.kubectl("get", "dynamic-scoring", "--output=name")
    assert done.stdout.split() == [f"dynamicscorer.{DOMAIN}/a", f"dynamicscoringconfig.{DOMAIN}/{CONFIG}"]


def test_both_versions_show_the_same(hub):
    hub.apply_scorer("a", {"configURL": "http://a.example/config", "configSyncMode": "Full", "timeout": "5s"})
    first, second = (
        yaml.safe_load(hub.kubectl("get", f"dynamicscorers.{v}.{DOMAIN}", "a", "--output=yaml").stdout)
        for v in ("v1alpha1", "v1")
    )
    assert first.pop("apiVersion") == f"{DOMAIN}/v1alpha1"
    assert second.pop("apiVersion") == f"{DOMAIN}/v1"
    assert first == second


def test_the_mode_is_none_when_it_is_not_said(hub):
    spec = yaml.safe_load((CRS / "good" / "article.yaml").read_text())["spec"]
    assert hub.apply_scorer("a", spec)["spec"] == {**spec, "configSyncMode": "None"}


@pytest.mark.parametrize(
    "field, says",
    [
        ("dynamicscorer", "A scoring API that managed clusters use."),
        ("dynamicscorer.spec.configSyncMode", "Where the configuration comes from."),
        ("dynamicscorer.spec.scoring.params.interval", "How often the score is computed, in seconds."),
        ("dynamicscorer.spec.source.auth.allowedHosts", "Where the credentials may be sent"),
        ("dynamicscorer.status.clusters.silent", "Clusters without news"),
        ("dynamicscoringconfig.spec.masks.clusterName", "Name of the ManagedCluster."),
    ],
)
def test_fields_are_explained(hub, field, says):
    done = hub.kubectl("explain", field)
    assert done.returncode == 0, done.stderr
    assert says in " ".join(done.stdout.split())


def test_objects_of_the_reference_live_on(hub):
    """The reference's CRDs accept them as well; and an object that ours would reject still gets its status."""
    del hub  # only for its skip
    with running_kube(crds="reference") as kube:
        old = Hub(kube)
        for name in OF_REFERENCE:
            done = old.kubectl("apply", "--dry-run=server", "--filename", CRS / "good" / name)
            assert done.returncode == 0, f"{name}: {done.stderr}"
        scoring = {"host": "a", "params": {"name": "", "interval": 0}}
        old.apply_scorer("odd", {"description": "", "configURL": "", "configSyncMode": "None", "scoring": scoring})
        crds = ROOT / "charts" / "dynamic-scoring-framework" / "crds"
        assert old.kubectl("replace", "--filename", crds).returncode == 0
        assert old.kubectl("wait", "--for=condition=Established", "--filename", crds).returncode == 0
        patched = old.patch(f"{SCORERS}/odd/status", {"status": STATUS})
        assert patched["status"]["scoreName"] == "sample_my_score"
        refused = old.kubectl("patch", "dynamicscorer", "odd", "--type=merge", '--patch={"spec": {"name": "x"}}')
        assert refused.returncode == 1
        assert "spec.source.params.query: Required value" in refused.stderr


def test_the_controllers_rights_are_enough_and_no_more(hub):
    def may(*words):
        return hub.kubectl("auth", "can-i", *words, user="controller").stdout.strip() == "yes"

    work = "manifestworks.work.open-cluster-management.io"
    assert may("list", "managedclusters.cluster.open-cluster-management.io")
    assert may("create", work, "--all-namespaces")
    assert may("patch", f"{work}/dynamic-scoring-config-manifestwork", "--all-namespaces")
    assert may("patch", f"dynamicscorers.{DOMAIN}", "--subresource=status")
    assert may("get", "secrets/api") and not may("get", "secrets/another") and not may("get", "secrets")
    assert not may("get", "secrets", "--namespace=default")
    assert not may("list", "secrets")
    assert not may("patch", f"dynamicscorers.{DOMAIN}")
    assert not may("delete", f"{work}/another", "--all-namespaces")
    one = f"/apis/work.open-cluster-management.io/v1/{work.split('.')[0]}"
    wanted = "fieldSelector=metadata.name%3Ddynamic-scoring-config-manifestwork"
    assert hub.kubectl("get", "--raw", f"{one}?{wanted}", user="controller").returncode == 0
    assert "forbidden" in hub.kubectl("get", "--raw", one, user="controller").stderr
