"""An update of a ManifestWork preserves what others own: the work agent's finalizer, labels, annotations, options."""

from lib.fake import answer
from lib.scorers import api_config, distributed, patch_work, writes, writes_at_rest
from lib.wait import wait_until
from lib.work import WORK_FINALIZER

THEIRS = {
    "metadata": {
        "finalizers": [WORK_FINALIZER],
        "labels": {"theirs": "label"},
        "annotations": {"theirs": "annotation"},
    },
    "spec": {"deleteOption": {"propagationPolicy": "Orphan"}},
}


def test_they_survive_an_update(hub, fake, start_controller):
    distributed(hub, fake, start_controller)
    patch_work(hub, "c1", THEIRS)
    before = hub.work("c1")
    fake.on("/config", answer(api_config("memory")))
    hub.wait_scores("c1", "memory")
    after = hub.work("c1")
    for name in ("uid", "finalizers", "labels", "annotations"):
        assert after["metadata"][name] == before["metadata"][name]
    assert after["metadata"]["labels"]["theirs"] == "label"
    assert after["metadata"]["finalizers"] == [WORK_FINALIZER]
    assert after["spec"]["deleteOption"] == {"propagationPolicy": "Orphan"}


def test_theirs_alone_cause_no_write(hub, fake, start_controller):
    controller = distributed(hub, fake, start_controller)
    writes_at_rest(controller)
    patched = writes(controller, operation="patch")
    version = patch_work(hub, "c1", THEIRS)["metadata"]["resourceVersion"]
    hub.add_cluster("c2")
    hub.wait_scores("c2", "cpu")  # by then the change of the other has been seen, too
    assert hub.work("c1")["metadata"]["resourceVersion"] == version
    assert writes(controller, operation="patch") == patched


def test_what_is_ours_is_mended(hub, fake, start_controller):
    distributed(hub, fake, start_controller)
    good = hub.work("c1")["spec"]
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "another", "namespace": "x"}}
    patch_work(hub, "c1", {"spec": {"workload": {"manifests": [other]}, "manifestConfigs": None}})
    wait_until(lambda: hub.work("c1")["spec"] == good, "the work is as it was")


def test_the_work_agent_sees_what_it_needs(hub, fake, start_controller):
    """The agents' ConfigMap, and a feedback rule for their report, which they own."""
    distributed(hub, fake, start_controller)
    spec = hub.work("c1")["spec"]
    carried = [(m["kind"], m["metadata"]["namespace"], m["metadata"]["name"]) for m in spec["workload"]["manifests"]]
    assert carried == [
        ("ConfigMap", "dynamic-scoring", "dynamic-scoring-config"),
        ("ConfigMap", "dynamic-scoring", "dynamic-scoring-status"),
    ]
    (config,) = spec["manifestConfigs"]
    assert config["resourceIdentifier"]["name"] == "dynamic-scoring-status"
    assert config["updateStrategy"]["type"] == "ReadOnly"
    (rule,) = config["feedbackRules"]
    assert rule["jsonPaths"] == [{"name": "status", "path": ".data.status"}]
