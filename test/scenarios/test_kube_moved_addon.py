"""An add-on that moves to another namespace takes its scores along: the new agent takes them over as it begins to lead, and
the old one, which goes on for a while, neither writes nor deletes what is not its own any more."""

import contextlib
import json

import pytest
from lib.agent import summary
from lib.fake import plain, results
from lib.kube import CLUSTER, DOMAIN, Refused
from lib.wait import LONG, wait_until
from lib.work import NAMESPACES, OWNED

OLD, NEW = "addon-before", "addon-after"
CONFIGMAPS = "api/v1/namespaces/{}/configmaps"


@pytest.fixture(name="kube")
def kube_with_both_namespaces(kube):
    for namespace in (OLD, NEW):
        with contextlib.suppress(Refused):
            kube.call("POST", NAMESPACES, {"metadata": {"name": namespace, "labels": OWNED}})
        kube.call("DELETE", CONFIGMAPS.format(namespace))
    return kube


def configure(kube, namespace, *summaries):
    data = {"summaries": json.dumps(list(summaries))}
    return kube.apply(CONFIGMAPS.format(namespace), "dynamic-scoring-config", {"data": data})


def flags(kube, namespace):
    admin = kube.kubeconfig()
    return (
        f"--hub-kubeconfig={admin}",
        f"--managed-kubeconfig={admin}",
        f"--cluster-name={CLUSTER}",
        f"--addon-namespace={namespace}",
        "--addon-name=dynamic-scoring",
    )


def owners(kube):
    return {name: o["metadata"]["annotations"][f"{DOMAIN}/owner"] for name, o in kube.objects().items()}


def uids(kube):
    return {name: o["metadata"]["uid"] for name, o in kube.objects().items()}


def wait_owners(kube, namespace, *names):
    expected = {name: f"{namespace}/dynamic-scoring" for name in names}
    wait_until(lambda: owners(kube) == expected, f"{namespace} owns {names}", LONG)


def test_it_moves(kube, fake, start_agent):
    fake.on("/old", results({}, 1))
    fake.on("/new", results({}, 2))
    of_old = [summary(name, f"{fake.url}/old", interval=2) for name in ("a", "b")]
    configure(kube, OLD, *of_old)
    old = start_agent({}, *flags(kube, OLD))
    for name in ("a", "b"):
        kube.wait_items(name, {name: 1})
    wait_owners(kube, OLD, "a", "b")
    before = uids(kube)

    # Its ConfigMap is still on its way: it has no scorers, and deletes nothing for that.
    new = start_agent({}, *flags(kube, NEW))
    wait_owners(kube, NEW, "a", "b")
    old.wait_until(lambda: "taken over by addon-after/dynamic-scoring" in old.log(), "the old agent knows")
    rounds = len(fake.requests("/old"))
    old.wait_until(lambda: len(fake.requests("/old")) >= rounds + 6, "the old one goes on")
    assert owners(kube) == {name: f"{NEW}/dynamic-scoring" for name in ("a", "b")}

    kube.delete(f"{CONFIGMAPS.format(OLD)}/dynamic-scoring-config")
    old.wait_until(lambda: not old.status()["scorers"], "the old one has no scorers")
    old.process.end()
    assert uids(kube) == before

    configure(kube, NEW, summary("a", f"{fake.url}/new", interval=2))
    kube.wait_items("a", {"a": 2})
    kube.wait_gone("b")  # nobody scores it any more
    assert uids(kube) == {"a": before["a"]}
    assert new.metric("dynamic_scoring_placement_writes_total", operation="create", result="ok") in (None, 0)


def test_whoever_begins_to_lead_has_them(kube, fake, start_agent):
    url = fake.on("/s", results({}, 1))
    for namespace in (OLD, NEW):
        configure(kube, namespace, summary("a", url, interval=2))
    first = start_agent({}, *flags(kube, OLD))
    kube.wait_items("a", {"a": 1})
    start_agent({}, *flags(kube, NEW))
    wait_owners(kube, NEW, "a")
    first.process.end()
    first.start()
    wait_owners(kube, OLD, "a")


def test_another_add_on_is_another_owner(kube, fake, start_agent):
    url = fake.on("/s", results({}, 1))
    for namespace in (OLD, NEW):
        configure(kube, namespace, summary("a", url, interval=2))
    start_agent({}, *flags(kube, OLD))
    kube.wait_items("a", {"a": 1})
    other = start_agent({}, *flags(kube, NEW)[:-1], "--addon-name=another")
    other.wait_until(lambda: "was created by addon-before/dynamic-scoring and is left alone" in other.log(), "it is told")
    assert owners(kube) == {"a": f"{OLD}/dynamic-scoring"}


def test_a_failure_after_the_move(kube, fake, start_agent):
    """The new agent's first round fails: the scores that it has taken over stay until validUntil."""
    configure(kube, OLD, summary("a", fake.on("/s", results({}, 1)), interval=600))
    old = start_agent({}, *flags(kube, OLD))
    kube.wait_items("a", {"a": 1})
    until = kube.object("a")["status"]["validUntil"]
    configure(kube, NEW, summary("a", fake.on("/t", plain("no", 500)), interval=600))
    start_agent({}, *flags(kube, NEW))
    wait_owners(kube, NEW, "a")
    kube.wait_condition("a", "Scored", "False")
    assert kube.items("a") == {"a": 1}
    assert kube.object("a")["status"]["validUntil"] == until
    old.process.end()
