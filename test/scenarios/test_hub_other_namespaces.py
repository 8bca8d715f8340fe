"""A DynamicScorer or DynamicScoringConfig in a namespace that no controller watches is told where to go."""

from lib.hub import HUB_NAMESPACE
from lib.kube import DOMAIN, NAMESPACE
from lib.scorers import full, limited_user

CRS = f"apis/{DOMAIN}/v1alpha1/namespaces/{{}}/{{}}"
EVENTS = "apis/events.k8s.io/v1/namespaces/{}/events"


def put_elsewhere(hub):
    """As the development guide applies them: without -n, in a context whose namespace is the agents'."""
    for plural, kind, name, spec in (
        ("dynamicscorers", "DynamicScorer", "sample", full("http://127.0.0.1:9/config")),
        ("dynamicscoringconfigs", "DynamicScoringConfig", "dynamic-scoring-config", {}),
    ):
        hub.put(CRS.format(NAMESPACE, plural), kind, name, spec)


def clean(hub):
    for plural in ("dynamicscorers", "dynamicscoringconfigs"):
        hub.drop(CRS.format(NAMESPACE, plural))
    hub.drop(EVENTS.format(NAMESPACE))


def notes(hub):
    found = hub.kube.call("GET", EVENTS.format(NAMESPACE))["items"]
    return {e["regarding"]["kind"]: (e["type"], e["reason"], e["note"]) for e in found}


def test_an_event_says_where_they_belong(hub, start_controller):
    clean(hub)
    controller = start_controller()
    put_elsewhere(hub)
    controller.wait_until(lambda: len(notes(hub)) == 2, "each has an Event")
    assert set(notes(hub)) == {"DynamicScorer", "DynamicScoringConfig"}
    for kind, reason, note in notes(hub).values():
        assert (kind, reason) == ("Warning", "NamespaceNotWatched")
        assert f"apply the object to namespace {HUB_NAMESPACE}" in note and f"--namespace={NAMESPACE}" in note
    said = [line for line in controller.log().splitlines() if "in a namespace that no controller watches" in line]
    assert len([line for line in said if f" namespace={NAMESPACE} " in line]) == 2  # other tests left theirs elsewhere
    # The other way that the Event names.
    controller.stop()
    hub.drop(EVENTS.format(NAMESPACE))
    put_elsewhere(hub)
    controller.flags = (*controller.flags, f"--namespace={NAMESPACE}")
    controller.command[2] = f"--kubeconfig={hub.kube.kubeconfig()}"
    controller.start()
    scorer = f"{CRS.format(NAMESPACE, 'dynamicscorers')}/sample"
    controller.wait_until(lambda: hub.kube.find(scorer)["status"]["conditions"], "its status is written")
    clean(hub)


def test_without_the_right_they_go_unnoticed(hub, start_controller):
    clean(hub)
    put_elsewhere(hub)
    controller = start_controller(kubeconfig=limited_user(hub, []))
    controller.wait_until(lambda: "go unnoticed" in controller.log(), "it is said")
    assert controller.log().count("go unnoticed") == 1
    clean(hub)
