"""status.lastSyncedConfig is what the API returned last, in the form that users know; switching to None clears it."""

import itertools
import time

from lib.fake import answer
from lib.scorers import api_config, distributed, full, own, serve, source, summaries, wait_status
from lib.wait import wait_until


def test_as_users_know_it(hub, fake, start_controller):
    distributed(hub, fake, start_controller)
    said = api_config("cpu")
    synced = hub.scorer_status("s")["lastSyncedConfig"]
    assert synced["name"] == "cpu" and synced["description"] == "about cpu"
    assert synced["source"]["type"] == "Prometheus"
    assert synced["source"]["host"] == said["source"]["host"]
    assert synced["source"]["path"] == "/api/v1/query_range"
    assert synced["source"]["params"] == {"query": "up", "range": 3600, "step": 60}
    assert synced["scoring"]["path"] == "/scoring"
    assert synced["scoring"]["params"] == {"name": "cpu", "interval": 30}
    assert hub.scorer_status("s")["configSource"] == "API"


def test_a_short_one_fits_the_schema(hub, fake, start_controller):
    """Missing values are "" and 0, as the schema requires."""
    hub.add_cluster("c1")
    hub.configure()
    serve(fake, "/config", "cpu")
    url = fake.on("/config", answer({"source": {"type": "none"}, "scoring": {"params": {"name": "cpu"}}}))
    hub.apply_scorer("s", full(url))
    start_controller()
    hub.wait_scores("c1", "cpu")
    synced = wait_status(hub, "s", lambda s: "lastSyncedConfig" in s, "it is told")["lastSyncedConfig"]
    assert (synced["name"], synced["description"]) == ("", "")
    assert synced["source"]["type"] == "None"
    assert synced["source"]["params"] == {"query": "", "range": 0, "step": 0}
    assert synced["scoring"]["params"] == {"name": "cpu", "interval": 0}
    got = summaries(hub, "c1")["cpu"]
    assert (got["sourceType"], got["scoringInterval"], got["scoringEndpoint"]) == ("None", 60, f"{fake.url}/scoring")


def test_it_is_read_again(hub, fake, start_controller):
    distributed(hub, fake, start_controller)
    fake.on("/config", answer(api_config("cpu", source=source(query="rate(x[5m])"))))
    wait_status(hub, "s", lambda s: s["lastSyncedConfig"]["source"]["params"]["query"] == "rate(x[5m])", "it is told")
    wait_until(lambda: summaries(hub, "c1")["cpu"]["sourceQuery"] == "rate(x[5m])", "it is distributed")


def test_what_agents_do_not_get_changes_no_work(hub, fake, start_controller):
    """A /config whose description, and members that nobody reads, differ in each answer."""
    distributed(hub, fake, start_controller)
    work = hub.work("c1")["metadata"]["resourceVersion"]
    asked = itertools.count(1)

    def another(connection, request):
        n = next(asked)
        answer(api_config("cpu", description=f"answer {n}", generatedAt=time.time(), requests=n))(connection, request)

    fake.on("/config", another)
    seen = set()

    def several_were_read():
        seen.add(hub.scorer_status("s")["lastSyncedConfig"]["description"])
        return len(seen & {f"answer {n}" for n in range(1, 100)}) >= 3

    wait_until(several_were_read, "three of its answers are told")
    assert hub.work("c1")["metadata"]["resourceVersion"] == work


def test_fields_that_it_overrides_are_named(hub, fake, start_controller):
    """Who edits spec.source sees why nothing happens."""
    distributed(hub, fake, start_controller)
    read = "the configuration was read from the scoring API"
    assert hub.wait_scorer("s", "ConfigSynced", "True", "Synced")[2] == read
    mine = source(query="mine")
    hub.apply_scorer("s", full(fake.url + "/config", source=mine, scoring={"params": {"name": "cpu", "interval": 99}}))
    words = f"{read}; in mode Full it overrides spec.source.params.query, spec.scoring.params.interval"
    assert hub.wait_scorer("s", "ConfigSynced", "True", says=words)[2] == words
    fake.on("/config", answer(api_config("cpu", source=mine)))
    words = f"{read}; in mode Full it overrides spec.scoring.params.interval"
    assert hub.wait_scorer("s", "ConfigSynced", "True", says=words)[2] == words


def test_none_forgets_it(hub, fake, start_controller):
    distributed(hub, fake, start_controller)
    hub.apply_scorer("s", own("mine", fake.url, source=source(query="mine")))
    hub.wait_scores("c1", "mine")
    assert summaries(hub, "c1")["mine"]["sourceQuery"] == "mine"
    wait_status(hub, "s", lambda s: "lastSyncedConfig" not in s and s["configSource"] == "Spec", "it is forgotten")
    assert hub.wait_scorer("s", "ConfigSynced", "True")[1] == "NotNeeded"
    # And does not come back by itself, as long as the API says nothing.
    fake.on("/config", answer({}, 500))
    hub.apply_scorer("s", full(fake.url + "/config"))
    hub.wait_scorer("s", "ConfigSynced", "False", "HTTPStatus")
    assert "lastSyncedConfig" not in hub.scorer_status("s")
    hub.wait_scores("c1")


def test_modes_in_any_case(hub, fake, start_controller):
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("f", full(serve(fake, "/f", "f"), configSyncMode="full"))
    hub.apply_scorer("n", own("n", fake.url, configSyncMode="NONE", source={"type": "none"}))
    start_controller()
    hub.wait_scores("c1", "f", "n")
    assert summaries(hub, "c1")["n"]["sourceType"] == "None"
