"""A failing /config, however it fails, leaves the last synced configuration active, and does not count as healthy."""

import pytest

from lib.fake import answer, hanging, plain
from lib.scorers import api_config, distributed, full, own, serve, source, wait_status
from lib.wait import wait_until

FAST = ("--health-check-timeout=5s", "--unhealthy-threshold=2")


@pytest.mark.parametrize(
    "reply, reason, words",
    [
        (answer(api_config("other"), 500), "HTTPStatus", "500"),
        (answer({"detail": "model not loaded"}, 503), "HTTPStatus", "model not loaded"),
        (
            plain("<html>login</html>", Content_Type="text/html"),
            "InvalidConfig",
            "not JSON at line 1, column 1; Content-Type: text/html, it begins with: <html>login</html>",
        ),
        (answer({"error": "no"}), "InvalidConfig", "scoring"),
        (answer(api_config("cpu", source={"type": "Graphite"})), "InvalidConfig", "Graphite"),
        (answer(api_config("cpu", source=source("prom:9090"))), "InvalidConfig", "source.host in /config: expected"),
        (answer(api_config("cpu", source=source(query=""))), "InvalidConfig", "query: missing"),
        (answer(api_config("cpu", scoring={"params": {"interval": 9999999}})), "InvalidConfig", "9999999"),
        (hanging, "Timeout", ""),
    ],
    ids=[
        "500_with_a_configuration",
        "503_with_words",
        "not_json",
        "another_document",
        "bad_field",
        "no_url",
        "no_query",
        "interval",
        "hangs",
    ],
)
def test_the_last_good_one_stays(hub, fake, start_controller, reply, reason, words):
    distributed(hub, fake, start_controller, *FAST)
    before, known = hub.summaries("c1"), hub.scorer_status("s")["lastSyncedConfig"]
    fake.on("/config", reply)
    _, _, message = hub.wait_scorer("s", "ConfigSynced", "False", reason)
    assert words in message and fake.url in message
    status = hub.scorer_status("s")
    assert status["lastSyncedConfig"] == known
    assert status["healthStatus"] == "Active" and status["scoreName"] == "cpu"
    assert hub.summaries("c1") == before
    fake.on("/config", answer(api_config("cpu", description="mended")))
    hub.wait_scorer("s", "ConfigSynced", "True")
    wait_status(hub, "s", lambda s: s["lastSyncedConfig"]["description"] == "mended", "it is read again")


def test_it_is_no_sign_of_health(hub, fake, start_controller):
    """An API without /healthz is judged by its /config: with status 500 it is not Active, whatever the body."""
    distributed(hub, fake, start_controller, *FAST)
    fake.on("/healthz", plain("no such path", 404))
    known = hub.scorer_status("s")["lastSyncedConfig"]
    fake.on("/config", answer(api_config("cpu"), 500))
    wait_status(hub, "s", lambda s: s["healthStatus"] == "Inactive", "it counts as unhealthy")
    status, reason, message = hub.scorer_condition("s", "Healthy")
    assert (status, reason) == ("False", "HTTPStatus") and "500" in message
    assert hub.scorer_status("s")["lastSyncedConfig"] == known
    hub.wait_scores("c1")  # an unhealthy scorer is left out
    fake.on("/config", answer(api_config("cpu")))
    hub.wait_scores("c1", "cpu")


def test_it_never_worked(hub, fake, start_controller):
    """An error's body is not used as a configuration."""
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu")))
    fake.on("/config", answer(api_config("cpu"), 500))
    start_controller(*FAST)
    hub.wait_scorer("s", "ConfigSynced", "False", "HTTPStatus")
    assert "lastSyncedConfig" not in hub.scorer_status("s")
    hub.wait_scores("c1")
    hub.wait_scorer("s", "Ready", "False")
    fake.on("/config", answer(api_config("cpu")))
    hub.wait_scores("c1", "cpu")


def ready(hub, fake, start_controller, spec):
    """Distributes a scorer "s" with score "cpu" to cluster c1; returns the summaries there."""
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("s", spec)
    start_controller()
    hub.wait_scores("c1", "cpu")
    hub.wait_scorer("s", "Ready", "Unknown", "Waiting")
    return hub.summaries("c1")


def test_a_spec_that_does_not_suffice_either(hub, fake, start_controller):
    """The spec supplies what /config omits. Once it is fixed, /config is read immediately."""
    silent = {"type": "Prometheus", "host": "http://prometheus.example:9090"}
    url = serve(fake, "/config", "cpu", source=silent)
    before = ready(hub, fake, start_controller, full(url, source=source(query="mine")))
    assert before[0]["sourceQuery"] == "mine"
    hub.apply_scorer("s", full(url))
    _, _, message = hub.wait_scorer("s", "Valid", "False", "Incomplete")
    assert "spec.source.params.query: missing" in message and "the last valid summary stays active" in message
    hub.wait_scorer("s", "ConfigSynced", "False", "InvalidConfig")
    assert hub.summaries("c1") == before
    assert hub.scorer_status("s")["scoreName"] == "cpu" and "lastSyncedConfig" in hub.scorer_status("s")
    hub.apply_scorer("s", full(url, source=source(query="mended")))
    hub.wait_scorer("s", "ConfigSynced", "True")
    hub.wait_scorer("s", "Ready", "Unknown", "Waiting")
    wait_until(lambda: hub.summaries("c1")[0]["sourceQuery"] == "mended", "the mended query is distributed")


def test_a_spec_in_none_mode(hub, fake, start_controller):
    fake.on("/healthz", plain("ok"))
    before = ready(hub, fake, start_controller, own("cpu", fake.url))
    hub.apply_scorer("s", own("cpu", fake.url, source=source(query=" ; ")))
    _, _, message = hub.wait_scorer("s", "Valid", "False", "Incomplete")
    assert "spec.source.params.query" in message and "the last valid summary stays active" in message
    hub.add_cluster("c2")
    hub.wait_scores("c2", "cpu")
    assert hub.summaries("c1") == hub.summaries("c2") == before
    # Another name is another scorer.
    hub.apply_scorer("s", own("memory", fake.url, source=source(query=" ; ")))
    hub.wait_scores("c1")
    # The status follows the ManifestWork.
    wait_until(lambda: "stays active" not in hub.wait_scorer("s", "Valid", "False")[2], "the last summary is forgotten")


def test_a_token_that_may_not_go_there_any_more(hub, fake, start_controller):
    auth = {"tokenSecretRef": {"name": "prom", "key": "token"}}
    allowing = {**source("http://other.example"), "auth": {**auth, "allowedHosts": ["http://prometheus.example:9090"]}}
    url = serve(fake, "/config", "cpu")
    before = ready(hub, fake, start_controller, full(url, source=allowing))
    assert before[0]["sourceEndpointAuthName"] == "prom"
    hub.apply_scorer("s", full(url, source={**allowing, "auth": auth}))
    hub.wait_scores("c1")
    hub.wait_scorer("s", "Valid", "False", "TokenHostNotAllowed")
