"""The guide's example on a real API server: 115 for performance, then 170 for power, and nothing left after a reset."""

import concurrent.futures
import contextlib
import re

import pytest
import yaml

from lib.guide import MARK, PERFORMANCE, POWER, running_guide
from lib.kube import DOMAIN, Refused
from lib.optimizer import Optimizer, kubeconfig_of_nothing, running_optimizer
from lib.wait import eventually, wait_until

NAMESPACE = "guide"
ADMISSION = "apis/admissionregistration.k8s.io/v1"
REF = {"apiGroup": "cluster.open-cluster-management.io", "kind": "Placement", "name": "x"}
PROBE = {
    "apiVersion": "policy.open-cluster-management.io/v1",
    "kind": "PlacementBinding",
    "placementRef": REF,
    "subjects": [{"apiGroup": "policy.open-cluster-management.io", "kind": "Policy", "name": "x"}],
}
RUN = re.compile(r"-([0-9a-f]{8})$")


@pytest.fixture
def guide(kube):
    with running_guide(kube, NAMESPACE) as one:
        yield one


@pytest.fixture
def optimizer(kube, guide):
    with running_optimizer(kube.kubeconfig(), f"--write-namespace={NAMESPACE}") as one:
        one.wait_ready()
        eventually(lambda: check_known(one, guide))
        yield one


def check_known(optimizer, guide):
    answer = optimizer.post("/plan", guide.request())
    assert answer.status == 200, answer.text


def placed(answer):
    return [(p["workload"], p["cluster"], p["device"]) for p in answer["placements"]]


def run_of(guide):
    """The eight digits in the names."""
    return {RUN.search(name).group(1) for name in guide.made() if RUN.search(name)}


def test_performance_then_power(guide, optimizer):
    one, two = guide.clusters
    answer = optimizer.post("/optimize", guide.request())
    assert answer.status == 200, answer.text
    first = answer.json
    assert (first["status"], first["objective_value"], first["gap"], first["applied"]) == ("Optimal", 115.0, 0.0, True)
    assert placed(first) == [("mwrs-app01", one, "3g.48gb"), ("mwrs-app02", two, "3g.48gb")]
    (run,) = run_of(guide)
    assert guide.made() == sorted(
        ["app01-placement", "app02-placement"] + [f"{what}-{c}-{run}" for what in ("binding", "placement") for c in (one, two)]
    )
    for expected in yaml.safe_load_all(first["output_yaml"]):
        path = guide.placements if expected["kind"] == "Placement" else guide.bindings
        found = guide.kube.call("GET", f"{path}/{expected['metadata']['name']}")
        assert found["metadata"]["labels"] == {MARK: "true"}
        found["spec"] = {k: v for k, v in found.get("spec", {}).items() if k in expected.get("spec", {})}  # no defaults
        assert all(found[k] == expected[k] for k in expected if k != "metadata"), (found, expected)
    binding = guide.items(guide.bindings)[f"binding-{one}-{run}"]
    assert [s["name"] for s in binding["subjects"]] == [f"policy-enable-mig-3g-{one}"]
    uid = guide.items(guide.placements)["app01-placement"]["metadata"]["uid"]

    second = optimizer.post("/optimize", guide.request(POWER)).json
    assert (second["status"], second["objective_value"]) == ("Optimal", 170.0)
    (again,) = run_of(guide)
    assert again != run
    assert len(guide.made()) == 6
    assert guide.items(guide.placements)["app01-placement"]["metadata"]["uid"] == uid, "it is updated in place"
    binding = guide.items(guide.bindings)[f"binding-{two}-{again}"]
    assert [s["name"] for s in binding["subjects"]] == [f"policy-enable-mig-2g-{two}"]

    gone = optimizer.post("/reset", {"namespace": NAMESPACE}).json
    assert gone["failed"] == [] and len(gone["deleted"]) == 6
    assert gone["deleted"][0].startswith("PlacementBinding/") and gone["deleted"][-1].startswith("Placement/")
    assert guide.made() == []


def test_kubectl_deletes_by_label(guide, optimizer):
    assert optimizer.post("/optimize", guide.request()).json["applied"]
    for plural in ("placements", "placementbindings"):
        done = guide.kube.kubectl("delete", plural, "-n", NAMESPACE, "-l", f"{MARK}=true")
        assert done.returncode == 0, done.stderr
    assert guide.made() == []
    eventually(lambda: check_applies(guide, optimizer))


def check_applies(guide, optimizer):
    assert optimizer.post("/optimize", guide.request()).json["applied"]


def test_a_dry_run_and_a_plan_make_nothing(guide, optimizer):
    for path, more in (("/optimize", {"dryRun": True}), ("/plan", {})):
        answer = optimizer.post(path, guide.request(**more)).json
        assert (answer["objective_value"], answer["applied"]) == (115.0, False)
    assert guide.made() == []


def test_a_plan_is_applied_by_its_hash(guide, optimizer):
    plan = guide.wait_known(optimizer).json
    answer = optimizer.post("/apply", {"planHash": plan["planHash"]})
    assert answer.status == 200, answer.text
    assert answer.json["applied"] and answer.json["output_yaml"] == plan["output_yaml"]
    names = sorted(o["metadata"]["name"] for o in yaml.safe_load_all(plan["output_yaml"]))
    assert guide.made() == names
    assert optimizer.post("/apply", {"planHash": "0123456789abcdef"}).status == 404


def test_the_page_says_whether_the_last_plan_is_in_force(guide, optimizer):
    def is_applied():
        return optimizer.get("/api/v1/status").json["plan"]["appliedAt"] is not None

    first = guide.wait_known(optimizer).json["planHash"]
    last = optimizer.post("/plan", guide.request(POWER)).json["planHash"]
    assert first != last and not is_applied()
    for hash_, applied in ((first, False), (last, True)):
        assert optimizer.post("/apply", {"planHash": hash_}).status == 200
        assert is_applied() is applied
    assert optimizer.post("/reset", {"namespace": "elsewhere"}).status == 403
    assert is_applied()
    assert optimizer.post("/reset", {"namespace": NAMESPACE}).status == 200
    assert not is_applied()


def test_a_plan_whose_inputs_changed_is_refused(guide, optimizer):
    plan = guide.wait_known(optimizer).json
    guide.relabel(f"policy-enable-mig-3g-{guide.clusters[0]}", resource_supply_amount="4")

    def check():
        answer = optimizer.post("/plan", guide.request())
        assert answer.json["planHash"] != plan["planHash"]

    eventually(check)
    answer = optimizer.post("/apply", {"planHash": plan["planHash"]})
    assert answer.status == 409, answer.text
    change = {"kind": "Policy", "name": f"policy-enable-mig-3g-{guide.clusters[0]}", "what": "labels"}
    assert answer.json["changed"] == [change]
    assert guide.made() == []


def test_objects_of_another_hand_stay(guide, optimizer):
    spec = {"spec": {"numberOfClusters": 7}}
    guide.kube.apply(guide.placements, "app01-placement", {"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement", **spec})
    before = guide.items(guide.placements, marked=False)
    answer = optimizer.post("/optimize", guide.request())
    assert answer.status == 409, answer.text
    assert answer.json["conflicts"] == ["Placement/app01-placement"]
    assert "nothing is changed" in answer.json["detail"] and "written" not in answer.json
    assert guide.items(guide.placements, marked=False) == before
    assert optimizer.post("/reset", {"namespace": NAMESPACE}).json == {"deleted": [], "failed": []}
    assert guide.items(guide.placements, marked=False) == before


@pytest.mark.parametrize("again", ["/apply", "/optimize"])
def test_a_refusal_in_the_middle_is_reported_and_repaired(guide, optimizer, again):
    """By a policy of the API server that lets the check pass: the answer lists what is written, and to apply again completes it."""
    first = optimizer.post("/optimize", guide.request()).json
    before = guide.made()
    plan = guide.wait_known(optimizer, preference=guide.request(POWER)["preference"]).json
    with refusing(guide, "(has(request.dryRun) && request.dryRun) || !object.metadata.name.contains('worker02')"):
        answer = optimizer.post("/apply", {"planHash": plan["planHash"]})
    assert answer.status == 422 and "not today" in answer.json["detail"], answer.text
    written = answer.json["written"]
    assert (written["updated"], written["deleted"], written["unknown"]) == ([], [], [])
    assert "POST /reset" in answer.json["detail"] and f"{len(written['created'])} of " in answer.json["detail"]
    assert sorted(before + [name.split("/")[1] for name in written["created"]]) == guide.made()

    body = {"planHash": plan["planHash"]} if again == "/apply" else guide.request(POWER)
    repaired = optimizer.post(again, body)
    assert repaired.status == 200 and repaired.json["objective_value"] == 170.0, repaired.text
    names = sorted(o["metadata"]["name"] for o in yaml.safe_load_all(repaired.json["output_yaml"]))
    assert guide.made() == names and len(names) == 6
    after = {**guide.items(guide.placements), **guide.items(guide.bindings)}
    assert {o["metadata"]["annotations"][f"{DOMAIN}/plan"] for o in after.values()} == {repaired.json["planHash"]}
    assert first["planHash"] != repaired.json["planHash"]


@contextlib.contextmanager
def refusing(guide, expression):
    """The API server refuses PlacementBindings for which the expression is not true."""
    rule = {"apiGroups": ["policy.open-cluster-management.io"], "apiVersions": ["*"], "resources": ["placementbindings"]}
    spec = {
        "matchConstraints": {"resourceRules": [{**rule, "operations": ["CREATE"]}]},
        "validations": [{"expression": expression, "message": "not today"}],
    }
    selector = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}}
    binding = {"policyName": "refusal", "validationActions": ["Deny"], "matchResources": selector}
    guide.kube.apply(f"{ADMISSION}/validatingadmissionpolicies", "refusal", {"spec": spec})
    guide.kube.apply(f"{ADMISSION}/validatingadmissionpolicybindings", "refusal", {"spec": binding})

    def is_in_force():
        try:
            guide.kube.apply(guide.bindings, "worker02-probe", PROBE)
        except Refused as why:
            return "not today" in str(why)
        guide.kube.delete(f"{guide.bindings}/worker02-probe")
        return False

    try:
        wait_until(is_in_force, "the API server refuses")
        yield
    finally:
        guide.kube.delete(f"{ADMISSION}/validatingadmissionpolicybindings/refusal")
        guide.kube.delete(f"{ADMISSION}/validatingadmissionpolicies/refusal")
        wait_until(lambda: not is_in_force(), "the API server refuses no longer")


def test_the_next_run_clears_what_a_killed_one_left(kube, guide, tmp_path):
    """Killed as soon as its first objects are there."""
    flags = (f"--write-namespace={NAMESPACE}",)
    victim = Optimizer(kube.kubeconfig(), tmp_path, flags)
    try:
        victim.start()
        victim.wait_ready()
        eventually(lambda: check_known(victim, guide))
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asked = pool.submit(victim.post, "/optimize", guide.request())
            wait_until(guide.made, "something is written", every=0.001)
            victim.kill()
            asked.exception()
    finally:
        victim.kill()
    left = guide.made()
    assert left
    with running_optimizer(kube.kubeconfig(), *flags) as one:
        one.wait_ready()
        eventually(lambda: check_applies(guide, one))
    made = guide.made()
    assert len(made) == 6 and len(run_of(guide)) == 1
    assert not {name for name in left if RUN.search(name)} & set(made), "those of the killed run are replaced"


def test_an_api_server_that_is_away_is_said(kube, guide, optimizer):
    plan = guide.wait_known(optimizer).json
    kube.pause()
    try:
        answer = optimizer.post("/apply", {"planHash": plan["planHash"]})
        assert answer.status in (503, 504) and "nothing is changed" in answer.json["detail"], answer.text
    finally:
        kube.resume()
    assert guide.made() == []


def test_other_namespaces_are_not_written(guide, optimizer):
    other = {**guide.request(), "namespace": "default"}
    answer = optimizer.post("/optimize", other)
    assert answer.status == 403 and "--write-namespace=default" in answer.json["detail"]
    assert optimizer.post("/reset", {"namespace": "default"}).status == 403


def test_errors_name_what_is_wrong(guide, optimizer):
    request = guide.request()
    request["clusters"][1]["availablePolicies"][0]["name"] = "nothing"
    answer = optimizer.post("/plan", request)
    assert (answer.status, answer.json["field"]) == (404, "clusters[1].availablePolicies[0].name")
    assert "there is no Policy nothing in namespace guide" in answer.json["detail"]
    answer = optimizer.post("/plan", {**guide.request(), "dryrun": True})
    assert answer.status == 422 and "dryRun" in answer.json["detail"]
    assert optimizer.post("/plan", "{").status == 400
    assert optimizer.post("/plan", guide.request("nothing")).status == 404


def test_options(guide, optimizer):
    one, two = guide.clusters
    pinned = optimizer.post("/plan", guide.request(pin=[{"workload": "mwrs-app01", "clusters": [two]}])).json
    assert placed(pinned) == [("mwrs-app01", two, "3g.48gb"), ("mwrs-app02", one, "3g.48gb")]
    rule = [{"workload": "mwrs-app02", "clusters": [one, two]}]
    forbidden = optimizer.post("/plan", guide.request(forbid=rule)).json
    assert [(w["workload"], w["reason"]) for w in forbidden["leftOut"]] == [("mwrs-app02", "Pinned")]
    replicas = optimizer.post("/plan", guide.request(targetWorkloads=[{"name": "mwrs-app01", "replicas": 2}])).json
    assert replicas["objective_value"] == 120.0 and len(replicas["placements"]) == 2
    form = "${app};${device}"
    scores = [{"addonPlacementScore": s, "weight": w} for s, w in ((PERFORMANCE, 0.5), (POWER, 1))]
    both = optimizer.post("/plan", guide.request(preference={"scores": scores, "scoreDimensionFormat": form})).json
    assert both["objective_value"] == 182.5


def test_while_the_hub_cannot_be_read_it_asks_to_come_back(tmp_path):
    request = {
        "clusters": [{"name": "c", "availablePolicies": []}],
        "targetWorkloads": [{"name": "w"}],
        "preference": {"addonPlacementScore": "s", "scoreDimensionFormat": "${app}"},
    }
    with running_optimizer(kubeconfig_of_nothing(tmp_path)) as one:
        answer = one.post("/plan", request)
        assert (answer.status, answer.headers["Retry-After"]) == (503, "5"), answer.text
        assert answer.json["retryAfterSeconds"] == 5 and "ManagedClusters cannot be listed" in answer.json["detail"]
