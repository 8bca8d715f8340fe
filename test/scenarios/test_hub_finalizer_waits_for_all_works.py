"""A deleted DynamicScoringConfig stays until every ManifestWork is gone, and reports what it waits for."""

from lib.hub import CONFIG, CONFIGS
from lib.scorers import FINALIZER, allow, distributed, forbid, full, limited_user, patch_work, serve, wait_no_work
from lib.wait import LONG, wait_until
from lib.work import WORK, WORK_FINALIZER, WORKS


def finalizers(hub):
    return hub.config()["metadata"].get("finalizers", [])


def ready(hub, fake, start_controller, **more):
    controller = distributed(hub, fake, start_controller, **more)
    wait_until(lambda: finalizers(hub) == [FINALIZER], "the config has our finalizer")
    return controller


def test_it_is_there_before_the_first_work(hub, fake, start_controller):
    """So that the config can be deleted at any moment."""
    hub.add_cluster("c1")
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu")))
    start_controller()
    hub.wait_scorer("s", "Healthy", "True")
    for _ in range(5):
        hub.configure()
        wait_until(lambda: hub.work("c1"), "the work is there", every=0)
        assert finalizers(hub) == [FINALIZER]
        hub.delete_config()
        wait_until(lambda: hub.config() is None, "the config is gone")
        assert hub.work("c1") is None


def test_also_at_the_start(hub, fake, start_controller):
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu")))
    start_controller()
    wait_until(lambda: hub.work("c1"), "the work is there", every=0)
    assert finalizers(hub) == [FINALIZER]


def test_it_waits_for_a_work_agent(hub, fake, start_controller):
    ready(hub, fake, start_controller, clusters=("c1", "c2"))
    patch_work(hub, "c2", {"metadata": {"finalizers": [WORK_FINALIZER]}})
    hub.delete_config()
    wait_no_work(hub, "c1")
    wait_until(lambda: hub.work("c2")["metadata"].get("deletionTimestamp"), "the other is asked to go")
    wait_until(lambda: "1 ManifestWork" in hub.wait_config("Distributed", "False", "Deleting")[2], "it is counted")
    assert finalizers(hub) == [FINALIZER]
    patch_work(hub, "c2", {"metadata": {"finalizers": None}})
    wait_until(lambda: hub.config() is None, "the config is gone")
    hub.wait_scorer("s", "Distributed", "False", "NoConfig")


def test_it_waits_while_a_delete_is_refused(hub, fake, start_controller):
    both = ("c1", "c2")
    for name in both:
        hub.add_namespace(name)
    user = limited_user(hub, both)
    ready(hub, fake, start_controller, clusters=both, kubeconfig=user)
    forbid(hub, "c2")
    hub.delete_config()
    wait_no_work(hub, "c1")
    wait_until(lambda: "forbidden" in hub.wait_config("Distributed", "False", "Deleting")[2], "the reason is told")
    assert "c2" in hub.config_condition("Distributed")[2]
    assert finalizers(hub) == [FINALIZER]
    allow(hub, "c2")
    wait_until(lambda: hub.config() is None, "the config is gone", LONG)
    assert hub.work("c2") is None


def test_it_is_made_again(hub, fake, start_controller):
    ready(hub, fake, start_controller)
    hub.delete_config()
    wait_until(lambda: hub.config() is None, "the config is gone")
    assert hub.work("c1") is None
    hub.configure()
    hub.wait_scores("c1", "cpu")
    wait_until(lambda: finalizers(hub) == [FINALIZER], "it has its finalizer")


def test_others_finalizers_stay(hub, fake, start_controller):
    ready(hub, fake, start_controller)
    hub.patch(f"{CONFIGS}/{CONFIG}", {"metadata": {"finalizers": [FINALIZER, "example.com/theirs"]}})
    hub.delete_config()
    wait_until(lambda: finalizers(hub) == ["example.com/theirs"], "ours is gone")
    assert hub.work("c1") is None
    hub.patch(f"{CONFIGS}/{CONFIG}", {"metadata": {"finalizers": None}})
    wait_until(lambda: hub.config() is None, "the config is gone")


def test_deleted_while_no_controller_runs(hub, fake, start_controller):
    controller = ready(hub, fake, start_controller)
    controller.stop()
    hub.delete_config()
    assert finalizers(hub) == [FINALIZER] and hub.work("c1") is not None
    controller.start()
    wait_until(lambda: hub.config() is None, "the config is gone")
    assert hub.work("c1") is None


def test_a_work_that_is_not_ours_is_left(hub, fake, start_controller):
    """One with the same name but without our label, while there is no config."""
    hub.add_cluster("c1")
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default"}}
    hub.put(WORKS.format("c1"), "ManifestWork", WORK, {"workload": {"manifests": [manifest]}})
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu")))
    start_controller()
    hub.wait_scorer("s", "Distributed", "False", "NoConfig")
    assert hub.work("c1")["spec"]["workload"]["manifests"] == [manifest]
