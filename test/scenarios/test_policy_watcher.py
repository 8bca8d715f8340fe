"""A ClusterClaim says whether a cluster is as its Policies want it: `empty` without one, `noncompliant` as soon as one is not
compliant, `compliant` only after all were so without a break for the stable time, also over restarts and replacements."""

import concurrent.futures
import time

import pytest
import yaml

from lib.kube import MERGE_PATCH, NAMESPACE, go_program
from lib.pod import deployed, running_pod
from lib.process import ROOT, environment, run
from lib.rights import grant, kubeconfig_of, rights_of
from lib.watcher import CLAIMS, PREFIX, Policies, claim, running_watcher, wait_claim
from lib.wait import wait_until

NAME = "watched"
FLAGS = ("--namespace=cluster1", f"--claim={NAME}")
AT_ONCE, NEVER = "--stable-duration=0s", "--stable-duration=1h"


@pytest.fixture
def policies(api_server):
    found = Policies(api_server)
    found.clear()
    api_server.delete(f"{CLAIMS}/{NAME}")
    yield found
    found.clear()
    api_server.delete(f"{CLAIMS}/{NAME}")


def generation(kube):
    """How often the value was written."""
    return kube.find(f"{CLAIMS}/{NAME}")["metadata"]["generation"]


def test_every_value(api_server, policies):
    with running_watcher(api_server, *FLAGS, "--stable-duration=2s") as watcher:
        wait_claim(api_server, NAME, "empty")
        policies.put("one")
        wait_claim(api_server, NAME, "noncompliant")
        began = time.monotonic()
        policies.set("one", "Compliant")
        wait_claim(api_server, NAME, "compliant")
        assert time.monotonic() - began >= 2
        policies.put("two", "Pending")
        wait_claim(api_server, NAME, "noncompliant")
        policies.edit("two", {"disabled": True})
        wait_claim(api_server, NAME, "compliant")
        policies.set("one", "NonCompliant")
        wait_claim(api_server, NAME, "noncompliant")
        wait_until(lambda: watcher.metric(f"{PREFIX}_policies", state="noncompliant") == 1, "the metric counts it")
        assert watcher.metric(f"{PREFIX}_policies", state="disabled") == 1
        policies.delete("one")
        wait_claim(api_server, NAME, "empty")
        policies.delete("two")
        assert watcher.metric(f"{PREFIX}_claim_edits_total") in (None, 0)
        assert watcher.get("/healthz").status == 200
    assert claim(api_server, NAME) == "empty"
    assert generation(api_server) == 7


def test_a_changed_spec_is_another_demand(api_server, policies):
    """The status is not about it yet."""
    policies.put("one", "Compliant")
    with running_watcher(api_server, *FLAGS, "--stable-duration=2s"):
        wait_claim(api_server, NAME, "compliant")
        policies.edit("one", {"remediationAction": "enforce"})
        wait_claim(api_server, NAME, "noncompliant")
        wait_claim(api_server, NAME, "compliant")


def test_stable_time_survives_a_restart(api_server, policies):
    """It counts from the objects' own times: the first value that is written is `compliant`."""
    policies.put("one", "Compliant")
    began = time.time()
    wait_until(lambda: time.time() > began + 5, "it has been compliant for some seconds")
    with running_watcher(api_server, *FLAGS, "--stable-duration=2s") as watcher:
        wait_claim(api_server, NAME, "compliant")
        writes = f"{PREFIX}_claim_writes_total"
        wait_until(lambda: watcher.metric(writes, operation="create", result="ok") == 1, "the write is counted")
    with running_watcher(api_server, *FLAGS, NEVER) as watcher:
        wait_until(lambda: "compliant at the start" in watcher.log(), "it has looked")
        assert watcher.metric(f"{PREFIX}_claim", value="compliant") == 1
    assert generation(api_server) == 1, "no break since the claim was written"
    policies.set("one", "NonCompliant")
    policies.set("one", "Compliant")
    with running_watcher(api_server, *FLAGS, NEVER):
        wait_claim(api_server, NAME, "noncompliant")
    assert generation(api_server) == 2


def test_edits_of_others_are_undone(api_server, policies):
    policies.put("one", "NonCompliant")
    with running_watcher(api_server, *FLAGS, AT_ONCE) as watcher:
        wait_claim(api_server, NAME, "noncompliant")
        api_server.call("PATCH", f"{CLAIMS}/{NAME}", {"spec": {"value": "compliant"}}, MERGE_PATCH)
        wait_claim(api_server, NAME, "noncompliant")
        wait_until(lambda: watcher.metric(f"{PREFIX}_claim_edits_total") == 1, "the edit is counted")
        api_server.delete(f"{CLAIMS}/{NAME}")
        wait_claim(api_server, NAME, "noncompliant")


def test_two_watchers_do_not_fight(api_server, policies):
    """Each value is written once, whichever of them writes it."""
    policies.put("one", "NonCompliant")
    stable = "--stable-duration=3s"
    with running_watcher(api_server, *FLAGS, stable) as old:
        wait_claim(api_server, NAME, "noncompliant")
        policies.set("one", "Compliant")
        with running_watcher(api_server, *FLAGS, stable) as new:
            wait_claim(api_server, NAME, "compliant")
            for watcher in (old, new):
                wait_until(lambda w=watcher: w.metric(f"{PREFIX}_claim_behind") == 0, "both agree")
                wait_until(lambda w=watcher: w.metric(f"{PREFIX}_claim", value="compliant") == 1, "both see it")
            policies.set("one", "Pending")
            wait_claim(api_server, NAME, "noncompliant")
            for watcher in (old, new):
                wait_until(lambda w=watcher: w.metric(f"{PREFIX}_claim", value="noncompliant") == 1, "both see it")
                assert not watcher.metric(f"{PREFIX}_claim_edits_total")
    # A write that changes nothing leaves the generation.
    assert generation(api_server) == 3


def test_environment_counts_where_no_flag_does(api_server, policies):
    env = {
        "POLL_INTERVAL_SEC": "10",
        "STABLE_DURATION_SEC": "3600",
        "TARGET_CLAIM_NAME": NAME,
        "WATCH_NAMESPACE": "cluster1",
    }
    policies.put("one", "Compliant")
    with running_watcher(api_server, env=env) as watcher:
        wait_claim(api_server, NAME, "noncompliant")
        assert watcher.log().count("POLL_INTERVAL_SEC") == 1
    with running_watcher(api_server, AT_ONCE, env=env):
        wait_claim(api_server, NAME, "compliant")


def manifests(cluster):
    """Of charts/samples, as the guide applies them."""
    text = (ROOT / "charts/samples/policy-watcher/deployment.yaml").read_text()
    return list(yaml.safe_load_all(text.replace("${CLUSTER_NAME}", cluster)))


def rights_of_manifests(claim_name):
    rules = {o["kind"]: o["rules"] for o in manifests("x") if "rules" in o}
    for rule in rules["ClusterRole"]:
        if "resourceNames" in rule:
            rule["resourceNames"] = [claim_name]
    return rights_of("namespace", rules["Role"]) + rights_of("everywhere", rules["ClusterRole"])


def check_rights(kube, folder, n, without):
    """Each of the watcher's promises, up to the one that needs the right that is missing."""
    namespace = name = f"watched-{n}"
    rights = rights_of_manifests(name)
    missing = rights[without] if without is not None else None
    kube.apply("api/v1/namespaces", namespace, {})
    account = namespace, "watcher"
    for role, where in {"namespace": namespace, "everywhere": None}.items():
        grant(kube, role, where, account, f"watcher-{n}", [r for r in rights if r.role == role and r != missing])
    user = kubeconfig_of(kube, account, folder / f"kubeconfig-{n}")
    policies = Policies(kube, namespace)
    policies.clear()
    kube.delete(f"{CLAIMS}/{name}")
    with running_watcher(kube, f"--namespace={namespace}", f"--claim={name}", kubeconfig=user, ready=False) as watcher:
        up = "dynamic_scoring_kubernetes_up"
        promises = {
            ("policies", "list", "watch"): lambda: watcher.metric(up, resource="policies") == 1,
            ("clusterclaims", "list", "watch"): lambda: watcher.metric(up, resource="clusterclaims") == 1,
            ("clusterclaims", "create"): lambda: claim(kube, name) == "empty",
            ("clusterclaims", "patch"): lambda: claim(kube, name) == "noncompliant",
        }
        for (resource, *verbs), kept in promises.items():
            if "patch" in verbs:
                policies.put("one")
            if missing and missing.resource == resource and missing.verb in verbs:
                wait_until(lambda: missing.refused() in watcher.log().replace('\\"', '"'), f"{missing} is refused")
                wait_until(lambda k=kept: not k(), f"{missing} is needed")
                break
            wait_until(kept, f"without {missing}: {resource} {verbs}")
    policies.clear()
    kube.delete(f"{CLAIMS}/{name}")


def test_each_right_is_needed_and_no_other(api_server, policies, tmp_path):
    count = len(rights_of_manifests("x"))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        cases = enumerate([None, *range(count)])
        for case in [pool.submit(check_rights, api_server, tmp_path, n, without) for n, without in cases]:
            case.result()


def test_the_manifest_is_taken_as_the_guide_has_it(api_server, policies):
    """`envsubst` fills in the cluster; the guide deletes first, then applies."""
    file = ROOT / "charts/samples/policy-watcher/deployment.yaml"
    text = run("envsubst", input=file.read_text(), env=environment(CLUSTER_NAME="cluster1")).stdout
    kubectl = [go_program("kubectl"), f"--kubeconfig={api_server.kubeconfig()}"]
    assert "not found" in run(*kubectl, "delete", "-f", "-", input=text).stderr
    done = run(*kubectl, "apply", "-f", "-", input=text)
    try:
        assert done.returncode == 0 and done.stdout.count("created") == 7, done
        found = run(*kubectl, "get", "clusterclaims", "policy-watcher-claim", "-o", "yaml").stdout
        assert "\n  value: empty\n" in found
        spec = deployed(api_server, NAMESPACE, "policy-watcher")
        with running_pod(api_server, NAMESPACE, spec, "policy-watcher-0") as pod:
            policies.put("one")
            wait_claim(api_server, "policy-watcher-claim", "noncompliant")
            wait_until(lambda: (pod.probe("livenessProbe"), pod.probe()) == (200, 200), "its probes pass")
    finally:
        run(*kubectl, "delete", "--wait=false", "-f", "-", input=text)
