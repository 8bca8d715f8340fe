"""Ready is a scorer that some cluster has a valid score of: waiting, empty and hung agents are called by their names, and
so are results that lead to no item."""

import concurrent.futures
import contextlib
import json
import signal
import threading
import time

from lib.agent import running_agent
from lib.fake import hanging, plain, results
from lib.hub import SCORERS, agent_flags, agent_namespace_of
from lib.scorers import distributed, full, own, scoring, serve, source, wait_status
from lib.wait import LONG, wait_until
from lib.work import FakeWorkAgent


def report(state, ago=0, lives=None):
    """Of an agent whose scores live so many seconds after the last success, `ago` seconds ago."""

    def at(seconds):
        return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() + seconds))

    times = {"lastSuccess": at(-ago), **({} if lives is None else {"validUntil": at(lives - ago)})}
    return json.dumps({"configurationInForce": True, "scorers": [{"scoreName": "cpu", "state": state, **times}]})


def age_distribution(hub, seconds):
    """As if the condition Distributed had been true for so long already."""
    conditions = hub.scorer_status("s")["conditions"]
    for condition in conditions:
        if condition["type"] == "Distributed":
            assert condition["status"] == "True"
            condition["lastTransitionTime"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - seconds))
    hub.patch(f"{SCORERS}/s/status", {"status": {"conditions": conditions}})


def test_waiting_for_ever(hub, fake, start_controller):
    controller = distributed(hub, fake, start_controller, clusters=("c1", "c2"))
    for cluster in ("c1", "c2"):
        hub.set_feedback(cluster, report("waiting"))
    hub.wait_scorer("s", "Scoring", "Unknown", "Waiting")
    hub.wait_scorer("s", "Ready", "Unknown", "Waiting")
    controller.wait_metric_is(0, "dynamic_scoring_hub_scorer_ready", scorer="s")
    hub.wait_scorer("s", "Distributed", "True")
    controller.stop()
    age_distribution(hub, 11 * 60)
    controller = start_controller()
    words = "waiting on 2 of 2 clusters: c1: no round has finished yet, and 1 more"
    assert hub.wait_scorer("s", "Ready", "False", "Waiting", says=words)[2] == words
    controller.wait_metric_is(0, "dynamic_scoring_hub_scorer_ready", scorer="s")
    hub.set_feedback("c2", report("ok", lives=90))
    hub.wait_scorer("s", "Ready", "True")
    controller.wait_metric_is(1, "dynamic_scoring_hub_scorer_ready", scorer="s")


def test_agents_that_never_report(hub, fake, start_controller):
    """As those of the reference."""
    controller = distributed(hub, fake, start_controller)
    hub.set_feedback("c1", None)
    hub.wait_scorer("s", "Distributed", "True")
    hub.wait_scorer("s", "Ready", "Unknown", "Waiting")
    controller.stop()
    age_distribution(hub, 11 * 60)
    start_controller()
    hub.wait_scorer("s", "Ready", "Unknown", "NoReports")


def test_nothing_to_score(hub, fake, start_controller):
    controller = distributed(hub, fake, start_controller, clusters=("c1", "c2"))
    for cluster in ("c1", "c2"):
        hub.set_feedback(cluster, report("empty", lives=90))
    words = "empty on 2 of 2 clusters: c1: the source returned no series, or the scoring API no results, and 1 more"
    for kind in ("Scoring", "Ready"):
        assert hub.wait_scorer("s", kind, "False", "Empty", says=words)[2] == words
    controller.wait_metric_is(2, "dynamic_scoring_hub_scorer_clusters", scorer="s", state="empty")
    row = hub.kubectl("get", "dynamicscorer", "s", "--no-headers").stdout.split()
    assert row[1:8] == ["False", "Empty", "Active", "2", "0", "0", "2"]  # CLUSTERS, SCORING, FAILING, EMPTY
    hub.set_feedback("c2", report("ok", lives=90))
    hub.wait_scorer("s", "Ready", "True", says="scoring on 1 of 2 clusters; empty on 1: c1: ")


def no_items(words):
    """A report of rounds that succeed, and of which Placement gets nothing."""
    said = json.loads(report("ok", lives=90))
    said["scorers"][0]["noItems"] = words
    return json.dumps(said)


def test_results_without_items(hub, fake, start_controller):
    """One cluster of several makes nobody unready; a report without the member counts as scoring."""
    controller = distributed(hub, fake, start_controller, clusters=("c1", "c2"))
    hub.set_feedback("c1", no_items("no item from 3 results of the scoring API; there are no scores"))
    hub.set_feedback("c2", report("empty", lives=90))
    words = "empty on 2 of 2 clusters: c1: no item from 3 results of the scoring API; there are no scores, and 1 more"
    for kind in ("Scoring", "Ready"):
        assert hub.wait_scorer("s", kind, "False", "NoItems", says=words)[2] == words
    controller.wait_metric_is(0, "dynamic_scoring_hub_scorer_ready", scorer="s")
    controller.wait_metric_is(2, "dynamic_scoring_hub_scorer_clusters", scorer="s", state="empty")
    assert hub.scorer_status("s")["failingClusters"][0] == {
        "name": "c1",
        "state": "empty",
        "error": "no item from 3 results of the scoring API; there are no scores",
    }
    hub.set_feedback("c2", report("ok", lives=90))
    hub.wait_scorer("s", "Ready", "True", says="scoring on 1 of 2 clusters; empty on 1: c1: no item from 3 results")


def test_a_score_is_not_valid_for_longer_than_it_says(hub, fake, start_controller):
    distributed(hub, fake, start_controller)
    hub.set_feedback("c1", report("ok", ago=80, lives=90))
    hub.wait_scorer("s", "Ready", "True")
    status = wait_status(hub, "s", lambda s: s["clusters"]["silent"] == 1, "time alone ends it", LONG)
    assert status["clusters"]["scoring"] == 0
    (one,) = status["failingClusters"]
    assert one["error"].startswith("its scores have expired: the last success was at ")
    assert hub.scorer_condition("s", "Ready")[0] != "True"


def test_real_agents_without_items(hub, fake, start_controller):
    """All results are NaN, or lack the label of the format; with a fallbackScore, which is no score of a round."""
    url = fake.url
    fake.on("/healthz", plain("ok"))
    hub.add_cluster("c1")
    hub.configure()
    cases = {  # the score's name: (its results, the rest of its spec, what is said)
        "nan": (results({}, float("nan")), {}, "; skipped 1 NaN or infinite; there are no scores"),
        "label": (results({"node": "n1"}, 7), {"scoreDimensionFormat": "${device}"}, "; skipped 1 with an empty name"),
        "fallback": (results({}, float("nan")), {"fallbackScore": -9}, "; fallbackScore is used"),
    }
    for name, (answered, more, _) in cases.items():
        fake.on(f"/{name}", answered)
        about = scoring(name, host=url, path=f"/{name}", params={"name": name, "interval": 2})
        source_type = {"source": {"type": "None"}, "healthCheck": "Agents"}
        hub.apply_scorer(name, {**own(name, url), **source_type, "scoring": about, **more})
    other = scoring("other", host=url, path="/nan", params={"name": "other", "interval": 2})
    hub.apply_scorer("other", {**own("other", url), "source": {"type": "None"}, "scoring": other, "scoreDestination": "None"})
    start_controller()
    with contextlib.ExitStack() as stack:
        stack.enter_context(FakeWorkAgent(hub, {"c1": (hub.kube, agent_namespace_of("c1"))}))
        stack.enter_context(running_agent({}, *agent_flags(hub, "c1")))
        for name, (_, _, words) in cases.items():
            message = hub.wait_scorer(name, "Ready", "False", "NoItems", LONG)[2]
            assert message.startswith("empty on 1 of 1 cluster: c1: no item from 1 results of the scoring API")
            assert words in message
            hub.wait_scorer(name, "Healthy", "True", "Healthy")
        hub.wait_scorer("other", "Ready", "True", deadline=LONG)  # nobody waits for its items
        fake.on("/nan", results({}, 7))
        hub.wait_scorer("nan", "Ready", "True", deadline=LONG)


def test_real_agents(hub, fake, start_controller):
    """One that is stopped in the middle, and one whose scoring API has no results."""
    url = fake.url
    about = {"source": {"type": "None"}, "scoring": scoring("cpu", host=url, params={"name": "cpu", "interval": 2})}
    fake.on("/healthz", plain("ok"))
    fake.on("/scoring", results({"node": "n1"}, 7))
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("s", {**own("cpu", url), **about})
    start_controller()
    with contextlib.ExitStack() as stack:
        stack.enter_context(FakeWorkAgent(hub, {"c1": (hub.kube, agent_namespace_of("c1"))}))
        agent = stack.enter_context(running_agent({}, *agent_flags(hub, "c1")))
        hub.wait_scorer("s", "Ready", "True", deadline=LONG)
        fake.on("/scoring", results())
        agent.wait_until(lambda: agent.status("cpu")["state"] == "empty", "the agent says so")
        hub.wait_scorer("s", "Ready", "False", "Empty", LONG)
        fake.on("/scoring", results({"node": "n1"}, 7))
        hub.wait_scorer("s", "Ready", "True", deadline=LONG)
        began = time.monotonic()
        agent.process.send(signal.SIGSTOP)
        try:
            hub.wait_scorer("s", "Scoring", "Unknown", "Silent", LONG)
            assert time.monotonic() - began < 90, "its scores were valid for 6 s"
        finally:
            agent.process.send(signal.SIGCONT)
        hub.wait_scorer("s", "Ready", "True", deadline=LONG)
        wait_until(lambda: agent.scores("cpu"), "it scores again")


@contextlib.contextmanager
def always_ready(hub):
    """The scorer s is Ready each time that someone looks."""
    done = threading.Event()
    seen = set()

    def look():
        while not done.is_set():
            seen.add(hub.scorer_condition("s", "Ready")[:2])

    with concurrent.futures.ThreadPoolExecutor() as pool:
        looking = pool.submit(look)
        try:
            yield
        finally:
            done.set()
        looking.result()
    assert seen == {("True", "Ready")}


def test_ready_while_a_change_is_on_its_way(hub, fake, start_controller):
    """Agents go on with what they have meanwhile, so whoever waits for Ready need not know of it."""
    distributed(hub, fake, start_controller)
    hub.set_feedback("c1", report("ok", lives=600))
    hub.wait_scorer("s", "Ready", "True")
    with always_ready(hub):
        for n in range(10):
            hub.apply_scorer("s", full(serve(fake, f"/config{n}", "cpu", source=source(query=f"up > {n}"))))
            wait_until(lambda n=n: f"up > {n}" in hub.summaries("c1")[0]["sourceQuery"], "the change is there")


def test_ready_while_an_agent_starts_anew(hub, fake, start_controller):
    """It says of all scorers that they wait for their first round, and the scores on the hub are still valid."""
    fake.on("/healthz", plain("ok"))
    hub.add_cluster("c1")
    hub.configure()
    for name, score in (("s", "cpu"), ("t", "other")):
        fake.on(f"/{score}", results({"node": "n1"}, 7))
        about = scoring(score, host=fake.url, path=f"/{score}", params={"name": score, "interval": 60})
        hub.apply_scorer(name, {**own(score, fake.url), "source": {"type": "None"}, "scoring": about})
    start_controller()
    with contextlib.ExitStack() as stack:
        stack.enter_context(FakeWorkAgent(hub, {"c1": (hub.kube, agent_namespace_of("c1"))}))
        agent = stack.enter_context(running_agent({}, *agent_flags(hub, "c1")))
        for name in ("s", "t"):
            hub.wait_scorer(name, "Ready", "True", deadline=LONG)
        fake.on("/cpu", hanging)
        fake.on("/other", plain("not today", 500))
        with always_ready(hub):
            agent.process.end()
            agent.start()
            hub.wait_scorer("t", "Scoring", "False", "ClustersFailing", LONG)  # its report is there
            assert agent.status("cpu")["state"] == "waiting"
    assert [e for e in hub.events("s") if e[0] == "Warning"] == []
