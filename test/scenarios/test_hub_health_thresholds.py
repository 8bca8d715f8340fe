"""A scorer becomes unhealthy only after several consecutive failures, and healthy after several successes."""

import time

from lib.fake import plain
from lib.scorers import distributed, full, own, serve, wait_status
from lib.wait import LONG, wait_until

GOOD, BAD = plain("ok"), plain("overloaded", 503)


def ready(hub, fake, start_controller, *flags):
    serve(fake, "/config", "cpu")
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("s", own("cpu", fake.url))
    controller = start_controller(*flags)
    hub.wait_scores("c1", "cpu")
    hub.wait_scorer("s", "Ready", "Unknown", "Waiting")
    return controller


def test_failures_between_successes(hub, fake, start_controller):
    controller = ready(hub, fake, start_controller, "--unhealthy-threshold=3")
    version = hub.work("c1")["metadata"]["resourceVersion"]
    asked = len(fake.requests("/healthz"))
    fake.on("/healthz", BAD, BAD, GOOD, BAD, BAD, GOOD, BAD, BAD, GOOD)
    controller.wait_until(lambda: len(fake.requests("/healthz")) >= asked + 9, "nine checks")
    probes = {"probe": "health", "result": "HTTPStatus", "scorer": "s"}
    controller.wait_metric("dynamic_scoring_hub_probes_total", 6, **probes)
    assert hub.scorer_status("s")["healthStatus"] == "Active"
    assert not [e for e in hub.events("s") if e[0] == "Warning"]
    assert hub.work("c1")["metadata"]["resourceVersion"] == version
    assert controller.metric("dynamic_scoring_hub_scorer_healthy", scorer="s") == 1


def test_after_so_many(hub, fake, start_controller):
    ready(hub, fake, start_controller, "--unhealthy-threshold=3", "--healthy-threshold=2")
    failed = []
    fake.on("/healthz", lambda c, r: (failed.append(r), BAD(c, r)))
    wait_status(hub, "s", lambda s: s["healthStatus"] == "Inactive", "it counts as unhealthy")
    assert len(failed) >= 3
    _, reason, message = hub.scorer_condition("s", "Healthy")
    assert reason == "HTTPStatus" and "503" in message and "overloaded" in message
    hub.wait_scores("c1")
    _, _, message = hub.wait_scorer("s", "Distributed", "False", "Suspended")
    assert "unhealthy" in message
    assert hub.wait_scorer("s", "Ready", "False")[1] == "HTTPStatus"
    fake.on("/healthz", GOOD)
    hub.wait_scorer("s", "Healthy", "True")
    hub.wait_scores("c1", "cpu")


def test_kept_when_told_so(hub, fake, start_controller):
    ready(hub, fake, start_controller, "--unhealthy-threshold=1", "--keep-unhealthy")
    fake.on("/healthz", BAD)
    wait_status(hub, "s", lambda s: s["healthStatus"] == "Inactive", "it counts as unhealthy")
    hub.add_cluster("c2")
    hub.wait_scores("c2", "cpu")
    assert hub.score_names("c1") == ["cpu"]


def test_the_first_success_is_enough(hub, fake, start_controller):
    """For an API without a verdict so far, and immediately rather than after an interval."""
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu")))
    start_controller("--healthy-threshold=5", "--health-check-interval=300s")
    hub.wait_scores("c1", "cpu")
    hub.apply_scorer("t", full(serve(fake, "/t", "memory")))
    hub.wait_scores("c1", "cpu", "memory")


def test_failures_count_at_the_pace_of_the_interval(hub, fake, start_controller):
    """Three failures take three intervals, even while a failing /config is retried sooner."""
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu")))
    start_controller("--health-check-interval=6s", "--unhealthy-threshold=3")
    hub.wait_scorer("s", "Ready", "Unknown", "Waiting")
    failed, asked = [], []
    fake.on("/healthz", lambda c, r: (failed.append(time.monotonic()), BAD(c, r)))
    fake.on("/config", lambda c, r: (asked.append(time.monotonic()), BAD(c, r)))
    wait_status(hub, "s", lambda s: s["healthStatus"] == "Inactive", "it counts as unhealthy")
    assert len(failed) >= 3 and failed[2] - failed[0] > 6
    assert len(asked) > len(failed)


def test_to_come_back_takes_no_interval(hub, fake, start_controller):
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu")))
    start_controller("--health-check-interval=20s", "--unhealthy-threshold=1", "--healthy-threshold=3")
    hub.wait_scorer("s", "Ready", "Unknown", "Waiting")
    fake.on("/healthz", BAD)
    wait_status(hub, "s", lambda s: s["healthStatus"] == "Inactive", "it counts as unhealthy")
    good = []
    fake.on("/healthz", lambda c, r: (good.append(time.monotonic()), GOOD(c, r)))
    hub.wait_scorer("s", "Healthy", "True", deadline=LONG)
    assert good[2] - good[0] < 20, "of 40 s"


def test_another_url_takes_nothing_away(hub, fake, other_fake, start_controller):
    """A healthy scorer whose configURL changes stays distributed while the new API is being probed."""

    def slowly(connection, request):
        time.sleep(0.2)
        plain("ok")(connection, request)

    other_fake.on("/healthz", slowly)
    distributed(hub, fake, start_controller, "--health-check-interval=300s")
    spec = full(serve(other_fake, "/config", "cpu"))
    other_fake.on("/healthz", slowly)
    before = hub.work("c1")["metadata"]["generation"]
    hub.apply_scorer("s", spec)
    wait_until(lambda: other_fake.requests("/healthz"), "the other API is asked")
    wait_until(
        lambda: other_fake.url in hub.summaries("c1")[0]["scoringEndpoint"], "clusters are sent to the other API"
    )
    hub.wait_scorer("s", "Ready", "Unknown", "Waiting")
    assert hub.score_names("c1") == ["cpu"]
    assert hub.work("c1")["metadata"]["generation"] == before + 1, "it was changed once, and never empty"
