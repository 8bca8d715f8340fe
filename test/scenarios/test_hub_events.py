"""There is an event for each transition, and none while nothing changes."""

from lib.fake import answer, plain
from lib.hub import EVENTS
from lib.scorers import api_config, distributed, full, writes_at_rest
from lib.wait import wait_until


def probes(controller):
    return sum(v for _, v in controller.metrics().all("dynamic_scoring_hub_probes_total"))


def same_for_a_while(hub, controller):
    """Once nothing is pending, further probes cause no events."""
    writes_at_rest(controller)
    before, asked = sorted(hub.events()), probes(controller)
    controller.wait_until(lambda: probes(controller) >= asked + 10, "more probes")
    assert sorted(hub.events()) == before


def reasons(hub, kind):
    return sorted({e[1] for e in hub.events("s") if e[0] == kind})


def test_transitions_only(hub, fake, start_controller):
    controller = distributed(hub, fake, start_controller, "--unhealthy-threshold=2", "--healthy-threshold=1")
    same_for_a_while(hub, controller)
    assert reasons(hub, "Warning") == []  # a start is no news
    fake.on("/healthz", plain("overloaded", 503))
    wait_until(lambda: "HTTPStatus" in reasons(hub, "Warning"), "the failure is told")
    hub.wait_scorer("s", "Healthy", "False")
    same_for_a_while(hub, controller)
    assert any("overloaded" in note for _, _, note in hub.events("s"))
    fake.on("/healthz", plain("ok"))
    wait_until(lambda: "Healthy" in reasons(hub, "Normal"), "and that all is well again")
    same_for_a_while(hub, controller)


def test_each_flap_is_told(hub, fake, start_controller):
    """Even if the same event was sent before."""

    def told():
        found = sorted(hub.kube.call("GET", EVENTS)["items"], key=lambda e: e["eventTime"])
        return [e["reason"] for e in found if e["reason"] in ("HTTPStatus", "Healthy")]

    distributed(hub, fake, start_controller, "--unhealthy-threshold=1", "--healthy-threshold=1")
    for n in (1, 2, 3):
        fake.on("/healthz", plain("overloaded", 503))
        wait_until(lambda: told()[-1:] == ["HTTPStatus"], f"it is down for the {n}. time")
        fake.on("/healthz", plain("ok"))
        wait_until(lambda: told()[-1:] == ["Healthy"], f"it is up again for the {n}. time")
    assert told()[-6:] == ["HTTPStatus", "Healthy"] * 3
    assert told().count("HTTPStatus") == 3


def test_a_configuration_that_fails_and_is_mended(hub, fake, start_controller):
    distributed(hub, fake, start_controller)
    fake.on("/config", plain("not json"))
    wait_until(lambda: "InvalidConfig" in reasons(hub, "Warning"), "the failure is told")
    fake.on("/config", answer(api_config("memory")))
    hub.wait_scores("c1", "memory")
    wait_until(lambda: "Synced" in reasons(hub, "Normal"), "and that it is mended")


def test_a_restart_is_no_news(hub, fake, start_controller):
    controller = distributed(hub, fake, start_controller)
    hub.apply_scorer("broken", full("http://127.0.0.1:9/config"))
    hub.wait_scorer("broken", "Healthy", "False")
    same_for_a_while(hub, controller)
    before = sorted(hub.events())
    controller.stop()
    controller.start()
    same_for_a_while(hub, controller)
    assert sorted(hub.events()) == before
