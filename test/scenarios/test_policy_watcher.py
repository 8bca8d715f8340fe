"""A ClusterClaim says whether a cluster is as its Policies want it: `empty` without one, `noncompliant` as soon as one is not
compliant, `compliant` only after all were so without a break for the stable time, also over restarts and replacements."""

import time

import pytest

from lib.kube import MERGE_PATCH, skip_without
from lib.watcher import CLAIMS, POLICIES, PREFIX, Policies, claim, running_watcher, wait_claim
from lib.wait import wait_until

NAME = "watched"
FLAGS = ("--namespace=cluster1", f"--claim={NAME}")
AT_ONCE, NEVER = "--stable-duration=0s", "--stable-duration=1h"


@pytest.fixture
def policies(api_server):
    skip_without(api_server, POLICIES.format("cluster1"))
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
