"""One of fifty scoring APIs hangs: the others become healthy and are distributed without delay."""

from lib.fake import answer, hanging
from lib.scorers import api_config, full, in_parallel, serve, wait_status

OTHERS = [f"s{i:02}" for i in range(49)]


def hangs(hub, fake):
    fake.on("/healthz", hanging)
    hub.apply_scorer("hangs", full(fake.on("/config", hanging)))


def test_the_others_go_on(hub, fake, other_fake, start_controller):
    hub.add_cluster("c1")
    hub.configure()
    hangs(hub, other_fake)
    in_parallel(lambda name: hub.apply_scorer(name, full(serve(fake, f"/{name}", name))), OTHERS)
    start_controller("--health-check-timeout=5m")
    hub.wait_scores("c1", *OTHERS)
    in_parallel(lambda name: hub.wait_scorer(name, "Ready", "Unknown", "Waiting"), OTHERS)
    assert hub.scorer_status("hangs")["healthStatus"] == "Unknown", "all that before the hung one's time-out"


def test_a_hung_one_is_told(hub, fake, other_fake, start_controller):
    """A change to another scorer takes effect immediately while it hangs."""
    hub.add_cluster("c1")
    hub.configure()
    hangs(hub, other_fake)
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu")))
    start_controller("--health-check-timeout=5s", "--unhealthy-threshold=1")
    hub.wait_scores("c1", "cpu")
    wait_status(hub, "hangs", lambda s: s["healthStatus"] == "Inactive", "it counts as unhealthy")
    assert hub.scorer_condition("hangs", "Healthy")[1] == "Timeout"
    hub.apply_scorer("s", full(fake.on("/changed", answer(api_config("memory")))))
    hub.wait_scores("c1", "memory")
