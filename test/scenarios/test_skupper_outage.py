"""With a scoring API and the hub's TSDB behind Skupper: no round is lost when configURL changes to its address, and no
sample when it goes away. Skupper is a stand-in; see lib/skupper.py.

DS_OUTAGE_SECONDS=120 makes the outage as long as a restart of Skupper's router may take.
"""

import contextlib
import os
import time

import pytest
from lib import remote, remote_wire
from lib.agent import running_agent
from lib.fake import answer, plain, results
from lib.hub import agent_flags, agent_namespace_of
from lib.kube import SCORES
from lib.scorers import api_config, full, scoring, summaries, wait_status
from lib.skupper import Link
from lib.tsdb import Tsdb
from lib.wait import LONG, eventually, wait_until
from lib.work import FakeWorkAgent

CLUSTERS = ("cluster1", "cluster2")
OUTAGE = float(os.environ.get("DS_OUTAGE_SECONDS", "6"))


def serve(fake, name):
    fake.on("/healthz", plain("ok"))
    fake.on(f"/{name}", results({"node": "n1"}, 42))
    about = scoring(name, params={"name": name, "interval": 1}, path=f"/{name}")
    return fake.on(f"/{name}/config", answer(api_config(name, source={"type": "None"}, scoring=about)))


def placement_score(hub, cluster):
    return hub.kube.find(f"{SCORES.format(cluster)}/shared") or {}


def is_scored(hub, cluster):
    """True while nothing says otherwise."""
    conditions = placement_score(hub, cluster).get("status", {}).get("conditions", [])
    return any(c["type"] == "Scored" and c["status"] == "True" for c in conditions)


@pytest.fixture
def fleet(hub, start_controller):
    for cluster in CLUSTERS:
        hub.add_cluster(cluster)
    hub.configure()
    with contextlib.ExitStack() as stack:
        stack.enter_context(FakeWorkAgent(hub, {c: (hub.kube, agent_namespace_of(c)) for c in CLUSTERS}))
        start_controller()
        yield [stack.enter_context(running_agent({}, *agent_flags(hub, c))) for c in CLUSTERS]


def test_config_url_changes_to_the_address_of_skupper(hub, fake, fleet):
    url = serve(fake, "shared")
    hub.apply_scorer("s", full(url))
    for agent in fleet:
        agent.wait_rounds("shared", 2)
    for cluster in CLUSTERS:
        wait_until(lambda c=cluster: is_scored(hub, c), f"{cluster} is scored", LONG)
    wait_status(hub, "s", lambda s: s["clusters"]["scoring"] == len(CLUSTERS), "both are scoring", LONG)

    def nothing_is_lost():
        assert hub.scorer_condition("s", "Ready")[0] == "True"
        return all(agent.scores("shared") for agent in fleet) and all(is_scored(hub, c) for c in CLUSTERS)

    uids = [placement_score(hub, c)["metadata"]["uid"] for c in CLUSTERS]
    with Link(fake.port) as link:
        hub.apply_scorer("s", full(link.url("/shared/config")))
        for cluster in CLUSTERS:
            fleet[0].holds_until(
                nothing_is_lost,
                lambda c=cluster: summaries(hub, c)["shared"]["scoringEndpoint"] == link.url("/shared"),
                f"{cluster} has the new address",
            )
        through = link.passed
        for agent in fleet:
            before = agent.status("shared")["rounds"]
            agent.holds_until(
                nothing_is_lost,
                lambda a=agent, n=before: a.status("shared")["rounds"] >= n + 2 and link.passed > through,
                "rounds go through Skupper",
            )
        wait_status(hub, "s", lambda s: s["clusters"]["upToDate"] == len(CLUSTERS), "both have it", LONG)
        assert [agent.status("shared")["failures"] for agent in fleet] == [0, 0]
        assert [placement_score(hub, c)["metadata"]["uid"] for c in CLUSTERS] == uids


def test_an_outage_loses_no_sample(tmp_path):
    """`own` is asked directly, `shared` through Skupper: its rounds fail and go on as soon as Skupper is back."""
    with contextlib.ExitStack() as stack:
        receiver = stack.enter_context(remote.Receiver())
        apis = stack.enter_context(remote.Scoring(own=remote.counted(50), shared=remote.counted(50)))
        to_tsdb = stack.enter_context(Link(receiver.port))
        to_api = stack.enter_context(Link(apis.server.server_address[1]))
        endpoint = remote.endpoint(receiver, url=to_tsdb.url("/api/v1/write"), remote_timeout="2s")
        agent = remote.Agent(tmp_path, apis, [endpoint])
        agent.summaries[1] |= {"scoringEndpoint": to_api.url("/shared"), "timeout": "1s"}
        agent.write_config()
        stack.enter_context(agent)
        receiver.wait(4)
        for goes_away in ("refuse", "drop", "stall"):
            arrived = len(receiver.with_samples())
            for link in (to_tsdb, to_api):
                getattr(link, goes_away)()
            rounds, end = len(apis.served["own"]), time.monotonic() + OUTAGE / 3
            remote.wait_for(
                "rounds without Skupper",
                lambda n=rounds, t=end: len(apis.served["own"]) >= n + 2 and time.monotonic() >= t,
                OUTAGE + LONG,
                agent.alive,
            )
            remote.wait_for("samples that wait", lambda: agent.remote("samples_pending") > 0, alive=agent.alive)
            assert len(receiver.with_samples()) <= arrived + 1, "only what was on its way"
            rounds = len(apis.served["shared"])
            for link in (to_tsdb, to_api):
                link.up()
            remote.wait_for(
                "rounds with Skupper",
                lambda n=rounds: len(apis.served["shared"]) >= n + 2,
                alive=agent.alive,
            )
        agent.caught_up(apis)
        assert agent.remote("samples_dropped_total") == agent.remote("samples_failed_total") == 0
        arrived = receiver.stream()
        remote.in_order(receiver.stream(accepted=False))
        for name in ("own", "shared"):
            check_all_came(arrived, name, len(apis.served[name]))


def check_all_came(arrived, name, rounds):
    """Round n gives the score n; the last two may not have ended. A round of `shared` whose answer was held back has
    failed, and gives nothing."""
    for i in range(50):
        samples = [s for s in arrived[remote.labels(name, node=f"n{i:05}")] if s.bits != remote_wire.STALE]
        values = [int(remote_wire.double(s.bits)) for s in dict.fromkeys(samples)]
        missing = set(range(rounds - 2)) - set(values)
        assert values == sorted(set(values)), f"{name}: {values}"
        assert not missing or name == "shared" and len(missing) <= 3, f"{name} lost {missing}"


def test_a_request_that_is_sent_again_counts_once_in_victoriametrics(tmp_path):
    """kill -9 between the hub's write and its answer: the same samples come again. Two hubs, of which one deduplicates,
    behind links that hold back the answers."""
    with contextlib.ExitStack() as stack:
        tsdbs, links, endpoints = {}, {}, []
        for name, flags in {"plain": [], "dedup": ["-dedup.minScrapeInterval=1ms"]}.items():
            (tmp_path / name).mkdir()
            tsdbs[name] = Tsdb("victoria-metrics", tmp_path / name)
            tsdbs[name].command += flags
            stack.enter_context(tsdbs[name])
            links[name] = stack.enter_context(Link(tsdbs[name].port))
            queue = {"min_backoff": "30ms", "max_backoff": "200ms"}
            send = {"queue_config": queue, "metadata_config": {"send": False}}
            endpoints.append({"url": links[name].url("/api/v1/write"), "name": name, **send})
        apis = stack.enter_context(remote.Scoring(t=remote.counted(3)))
        agent = stack.enter_context(remote.Agent(tmp_path / "agent", apis, endpoints))
        for link in links.values():
            remote.wait_for("a request", lambda l=link: l.passed, alive=agent.alive)
            link.mute()
            remote.wait_for("an answer to hold back", lambda l=link: l.held, alive=agent.alive)
        agent.kill()
        for link in links.values():
            link.up()
        agent.start()
        agent.caught_up(apis)
        agent.stop()

        def check():
            found = {name: values_of(tsdb) for name, tsdb in tsdbs.items()}
            assert len(found["plain"]) > len(set(found["plain"])), "no request was sent twice"
            assert found["dedup"] == sorted(set(found["dedup"]))
            # The end of the process may fall between the spools of the two endpoints: one sample of one of them. Each
            # marks the end of the series at a time of its own.
            values = {name: {s for s in samples if s[1] == s[1]} for name, samples in found.items()}
            assert len(values["dedup"] ^ values["plain"]) <= 1, found

        eventually(check)


def values_of(tsdb):
    """The samples of one series."""
    return next(iter(tsdb.raw('dynamic_score{ds_node="n00000"}').values()), [])
