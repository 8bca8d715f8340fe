"""A restarted controller finds everything up to date and writes nothing; neither does one that keeps running."""

from lib.fake import answer, plain
from lib.hub import SCORERS
from lib.scorers import api_config, distributed, full, own, serve, wait_status, writes
from lib.wait import wait_until


def all_versions(hub):
    """{object: (version, status)}; the status is for the assertion's message."""
    found = [*hub.kube.call("GET", SCORERS)["items"], *hub.works().values(), hub.config()]
    names = [f"{o['metadata']['namespace']}/{o['metadata']['name']}" for o in found]
    return {n: (o["metadata"]["resourceVersion"], o.get("status")) for n, o in zip(names, found)}


def settled(hub):
    """Waits until two reads with a second of probes between them are equal."""
    last = {}

    def same():
        nonlocal last
        before, last = last, all_versions(hub)
        return before == last

    wait_until(same, "all has come to rest", every=2.5)
    return last


def probes(controller):
    return sum(v for _, v in controller.metrics().all("dynamic_scoring_hub_probes_total"))


def test_nothing_is_written(hub, fake, other_fake, start_controller):
    controller = distributed(hub, fake, start_controller, "--unhealthy-threshold=1", clusters=("c1", "c2", "c3"))
    hub.apply_scorer("own", own("own", fake.url))
    other_fake.on("/healthz", plain("down", 500))
    hub.apply_scorer("unhealthy", full(other_fake.on("/config", answer(api_config("unhealthy")))))
    hub.apply_scorer("refused", full("http://127.0.0.1:9/config"))
    hub.apply_scorer("younger", full(serve(fake, "/younger", "own")))
    hub.wait_scorer("refused", "Healthy", "False")
    hub.wait_scorer("unhealthy", "Healthy", "False")
    hub.wait_scorer("own", "Ready", "Unknown", "Waiting")
    before = settled(hub)
    done, asked = writes(controller), probes(controller)
    controller.wait_until(lambda: probes(controller) >= asked + 30, "many more probes")
    assert all_versions(hub) == before and writes(controller) == done
    for end in (controller.stop, controller.kill):
        end()
        controller.start()
        controller.wait_until(lambda: probes(controller) >= 30, "everything has been asked")
        assert all_versions(hub) == before
        assert writes(controller) == 0
    assert not [e for e in hub.events() if "NotProbed" in e]


def test_what_is_known_survives(hub, fake, start_controller):
    """The synced configuration and the health are taken from the status if the API is down at startup."""
    controller = distributed(hub, fake, start_controller)
    before, known = hub.summaries("c1"), hub.scorer_status("s")["lastSyncedConfig"]
    controller.stop()
    fake.on("/healthz", plain("starting", 503))
    fake.on("/config", plain("starting", 503))
    controller.start()
    hub.wait_scorer("s", "ConfigSynced", "False")
    assert hub.scorer_status("s")["lastSyncedConfig"] == known
    assert hub.summaries("c1") == before
    fake.on("/healthz", plain("ok"))
    fake.on("/config", answer(api_config("memory")))
    hub.wait_scores("c1", "memory")
    wait_status(hub, "s", lambda s: s["scoreName"] == "memory", "it is told")
