"""The reference implementation's objects on the hub become the controller's, and go when theirs would have gone."""

from lib import reference
from lib.hub import CONFIG, CONFIGS
from lib.kube import DOMAIN
from lib.scorers import FINALIZER, full, serve, source, wait_no_work
from lib.wait import wait_until


def finalizers(hub):
    return hub.config()["metadata"].get("finalizers", [])


def left_by_the_reference(hub, fake, cluster="c1"):
    """The config with its finalizer, a scorer, and a ManifestWork without a label."""
    hub.add_cluster(cluster)
    hub.configure()
    hub.patch(f"{CONFIGS}/{CONFIG}", {"metadata": {"finalizers": ["example.com/other", reference.FINALIZER]}})
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu")))
    return reference.add_work(hub.kube, cluster, [{"scoreName": "cpu"}])


def test_work_and_finalizer_are_taken_over(hub, fake, start_controller):
    was = left_by_the_reference(hub, fake)
    start_controller()
    wait_until(lambda: finalizers(hub) == ["example.com/other", FINALIZER], "ours replaces theirs")
    wait_until(lambda: hub.summaries("c1")[0].get("sourceEndpoint"), "the work is ours")
    found = hub.work("c1")["metadata"]
    assert found["uid"] == was["metadata"]["uid"] and found["labels"][f"{DOMAIN}/managed-by"] == "controller"
    hub.delete_config()
    wait_no_work(hub, "c1")
    wait_until(lambda: finalizers(hub) == ["example.com/other"], "nothing of ours holds it")


def test_a_deletion_that_nobody_finishes_is_finished(hub, fake, start_controller):
    left_by_the_reference(hub, fake)
    hub.delete_config()
    assert hub.config()["metadata"]["deletionTimestamp"]
    start_controller()
    wait_no_work(hub, "c1")
    wait_until(lambda: finalizers(hub) == ["example.com/other"], "nothing holds it")


def test_the_condition_names_the_line_that_allows_a_token(hub, fake, start_controller):
    """A DynamicScorer with source.auth, but without source.host."""
    hub.add_cluster("c1")
    hub.configure()
    auth = {"tokenSecretRef": {"name": "api-auth-secret", "key": "token"}}
    url = serve(fake, "/config", "cpu", source=source("http://prom.monitoring.svc:9090"))
    hub.apply_scorer("s", full(url, source={"auth": auth}))
    start_controller()
    message = hub.wait_scorer("s", "ConfigSynced", "False", "TokenHostNotAllowed")[2]
    line = message.partition("; to allow it, set spec.source.host: ")[2].partition(";")[0]
    assert line == "http://prom.monitoring.svc:9090"
    hub.apply_scorer("s", full(url, source={"auth": auth, "host": line}))
    hub.wait_scorer("s", "ConfigSynced", "True")
    hub.wait_scores("c1", "cpu")
