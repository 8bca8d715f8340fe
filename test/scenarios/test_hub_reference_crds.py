"""With the CRDs of the reference implementation, which prune conditions, everything works, and nothing is written
endlessly."""

import contextlib

import pytest

from lib.controller import running_controller
from lib.fake import answer
from lib.hub import clean_hub
from lib.kube import running_kube
from lib.scorers import api_config, full, serve, wait_status, writes, writes_at_rest
from lib.wait import wait_until


@pytest.fixture(name="reference", scope="module")
def reference_server():
    with running_kube(crds="reference") as server:
        yield server


@pytest.fixture(name="hub")
def reference_hub(reference):
    return clean_hub(reference)


@pytest.fixture(name="start_controller")
def start(reference):
    with contextlib.ExitStack() as stack:
        yield lambda *args, **more: stack.enter_context(running_controller(reference, *args, **more))


ADDON_GROUP = "addon.open-cluster-management.io"


def probes(controller):
    return sum(v for _, v in controller.metrics().all("dynamic_scoring_hub_probes_total"))


def ready(hub, fake, start_controller):
    hub.add_cluster("c1")
    hub.configure(masks=[])
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu")))
    hub.apply_scorer("refused", full("http://127.0.0.1:9/config"))
    controller = start_controller()
    hub.wait_scores("c1", "cpu")
    wait_status(hub, "s", lambda s: s["healthStatus"] == "Active" and "lastSyncedConfig" in s, "the status")
    wait_status(hub, "refused", lambda s: s["healthStatus"] == "Inactive", "the status")
    return controller


def test_it_works(hub, fake, start_controller):
    controller = ready(hub, fake, start_controller)
    assert hub.scorer_status("s")["lastSyncedConfig"]["scoring"]["params"] == {"name": "cpu", "interval": 30}
    fake.on("/config", answer(api_config("memory")))
    hub.wait_scores("c1", "memory")
    hub.configure(masks=[{"clusterName": "c*", "scoreName": "mem*"}])
    hub.wait_scores("c1")
    hub.delete_config()
    wait_until(lambda: hub.config() is None, "the config is gone")
    assert hub.work("c1") is None
    assert writes(controller, result="invalid") == 0


def test_nothing_without_end(hub, fake, start_controller):
    controller = ready(hub, fake, start_controller)
    done = writes_at_rest(controller)
    asked = probes(controller)
    versions = [hub.scorer(n)["metadata"]["resourceVersion"] for n in ("s", "refused")]
    controller.wait_until(lambda: probes(controller) >= asked + 20, "many more probes")
    assert writes(controller) == done
    assert [hub.scorer(n)["metadata"]["resourceVersion"] for n in ("s", "refused")] == versions
    # A start knows not what was sent before: once more, and no more.
    controller.stop()
    controller.start()
    controller.wait_until(lambda: probes(controller) >= 20, "many more probes")
    assert writes(controller) <= 5


def test_a_hub_without_the_kind_of_add_ons(hub, fake, start_controller):
    """Agents may be installed by other means; no alert for that. The last test here: the kind does not come back."""
    hub.kube.delete("apis/apiextensions.k8s.io/v1/customresourcedefinitions/managedclusteraddons." + ADDON_GROUP)
    controller = ready(hub, fake, start_controller)
    wait_until(lambda: "kind not installed" in controller.log(), "it is said")
    assert controller.health("/readyz").status == 200
    assert controller.metric("dynamic_scoring_kubernetes_up", resource="managedclusters") == 1
    assert controller.metric("dynamic_scoring_kubernetes_up", resource="managedclusteraddons") is None
    assert controller.status()["troubles"]["ManagedClusterAddOns"] is None
