"""`kubectl get` shows at a glance what does not work."""

import json

from lib.fake import plain
from lib.scorers import distributed, full, wait_status
from lib.wait import eventually, wait_until

CLASSES = ("SCORING", "FAILING", "WAITING", "SILENT")


def table(hub, *words):
    """[{column: value}]; columns are separated by two or more spaces."""
    done = hub.kubectl("get", *words)
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.rstrip("\n").split("\n")
    starts = [i for i in range(len(head)) if head[i] != " " and (i == 0 or head[i - 2 : i] == "  ")]
    ends = [*starts[1:], None]
    names = [head[a:b].strip() for a, b in zip(starts, ends)]
    return [{n: row[a:b].strip() for n, a, b in zip(names, starts, ends)} for row in rows]


def report(state, **more):
    return json.dumps({"configurationInForce": True, "scorers": [{"scoreName": "cpu", "state": state, **more}]})


def look_at_the_scorers(hub):
    broken, good = table(hub, "dynamicscorers")
    assert (good["NAME"], good["HEALTH"], good["READY"], good["INTERVAL"]) == ("s", "Active", "True", "30s")
    assert (good["CLUSTERS"], good["SCORING"], good["FAILING"]) == ("2", "1", "0")
    assert (broken["NAME"], broken["HEALTH"], broken["READY"]) == ("broken", "Inactive", "False")
    assert broken["REASON"] == "Unreachable" and "http://127.0.0.1:9/healthz: " in broken["MESSAGE"]
    broken, good = table(hub, "dscorer", "--output=wide")
    assert (good["MODE"], good["SOURCE"], good["SCORE"], good["UP-TO-DATE"]) == ("Full", "API", "cpu", "2")


def test_scorers(hub, fake, start_controller):
    distributed(hub, fake, start_controller, clusters=("c1", "c2"))
    hub.set_feedback("c1", report("ok"))
    hub.apply_scorer("broken", full("http://127.0.0.1:9/config"))
    hub.wait_scorer("broken", "Healthy", "False")
    wait_status(hub, "s", lambda s: s["clusters"]["upToDate"] == 2, "it is everywhere")
    eventually(lambda: look_at_the_scorers(hub))
    done = hub.kubectl("wait", "--for=condition=Ready", "dynamicscorer/s", "--timeout=60s")
    assert done.returncode == 0, done.stderr


def test_configs(hub, fake, start_controller):
    distributed(hub, fake, start_controller, clusters=("c1", "c2"))
    hub.set_feedback("c1", report("ok"))
    c2 = "ManifestWork not yet applied on 1 of 2 clusters: c2: the work agent has not applied it yet"

    def look():
        (row,) = table(hub, "dynamicscoringconfigs")
        assert (row["NAME"], row["READY"], row["MESSAGE"]) == ("dynamic-scoring-config", "True", c2)
        shown = [row[c] for c in ("CLUSTERS", "UP-TO-DATE", "APPLIED", "REPORTING", "FAILING")]
        assert shown == ["2", "2", "1", "1", "0"]
        assert [c["name"] for c in hub.config()["status"]["failingClusters"]] == ["c2"]

    eventually(look)
    hub.set_feedback("c2", None)
    assert hub.wait_config("Distributed", "True")[2] == "distributed to all 2 clusters"


def test_each_cluster_is_accounted_for(hub, fake, start_controller):
    """The columns add up, and each cluster that does not score is named with its reason."""
    distributed(hub, fake, start_controller, clusters=("c1", "c2", "c3", "c4", "c5"))
    hub.set_feedback("c1", report("ok"))
    hub.set_feedback("c2", report("failing", error="HTTP 500 Internal Server Error"))
    hub.set_feedback("c3", report("waiting"))
    hub.set_feedback("c5", None)
    silent = "the work agent has not applied the ManifestWork yet"
    waiting = "no round has finished yet"
    no_agent = "the ManifestWork is applied, but no agent has reported"

    def look():
        (row,) = table(hub, "dynamicscorers", "--output=wide")
        assert [row[c] for c in ("CLUSTERS", *CLASSES)] == ["5", "1", "1", "1", "2"]
        assert row["MESSAGE"] == (
            "failing on 1 of 5 clusters: c2: HTTP 500 Internal Server Error; "
            f"silent on 2: c4: {silent}, and 1 more; waiting on 1: c3: {waiting}; scoring on 1"
        )
        named = [(c["name"], c["state"], c["error"]) for c in hub.scorer_status("s")["failingClusters"]]
        assert named[1:] == [("c3", "waiting", waiting), ("c4", "silent", silent), ("c5", "silent", no_agent)]
        assert hub.scorer_condition("s", "Distributed")[2] == (
            "ManifestWork not yet applied on 1 of 5 clusters: c4: the work agent has not applied it yet"
        )

    eventually(look)


def test_a_config_that_fails(hub, fake, start_controller):
    distributed(hub, fake, start_controller, clusters=("c1", "c2"))
    for cluster in ("c1", "c2"):
        hub.set_feedback(cluster, report("ok"))

    def look(synced, message):
        (row,) = table(hub, "dynamicscorers", "--output=wide")
        assert [row[c] for c in ("HEALTH", "SYNCED", "READY")] == ["Active", synced, "True"]
        assert row["MESSAGE"] == message

    eventually(lambda: look("True", "scoring on 2 of 2 clusters"))
    url = fake.on("/config", plain("model not loaded", 500))
    why = f"{url}: HTTP 500 Internal Server Error: model not loaded; the last valid configuration stays active"
    eventually(lambda: look("False", f"{why}; scoring on 2 of 2 clusters"))


def test_describe_shows_the_events(hub, fake, start_controller):
    distributed(hub, fake, start_controller)
    hub.apply_scorer("broken", full("http://127.0.0.1:9/config"))
    hub.wait_scorer("broken", "Healthy", "False")

    def described():
        done = hub.kubectl("describe", "dynamicscorer", "broken")
        return done.returncode == 0 and "Warning" in done.stdout and "Unreachable" in done.stdout and done.stdout

    assert "Events:" in wait_until(described, "the events are shown", every=0.5)
