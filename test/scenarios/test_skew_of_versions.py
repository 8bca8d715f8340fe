"""Agents and controllers of this version and the one before work together, in both directions, and each takes over from
the other in place: objects, spool and all."""

import contextlib

import pytest
from lib import remote, remote_wire
from lib.agent import PROGRAM, running_agent
from lib.controller import running_controller
from lib.fake import answer, plain, results
from lib.hub import agent_flags, agent_namespace_of
from lib.kube import SCORES, script
from lib.outage import export, folder_of
from lib.scorers import api_config, full, scoring, wait_status
from lib.wait import LONG, wait_until
from lib.work import FakeWorkAgent

AGENTS = ("before", "now")  # the clusters, named after their agents' versions


@pytest.fixture(scope="module")
def programs():
    return {"before": script("old-version"), "now": PROGRAM}


def score(hub, cluster, name):
    return hub.kube.find(f"{SCORES.format(cluster)}/{name}") or {}


def items(hub, cluster, name):
    return {s["name"]: s["value"] for s in score(hub, cluster, name).get("status", {}).get("scores", [])}


def serve(fake, name, **more):
    fake.on("/healthz", plain("ok"))
    source = {"type": "None"}
    about = scoring(name, params={"name": name, "interval": 1}, path=f"/{name}")
    return fake.on(f"/{name}/config", answer(api_config(name, source=source, scoring=about)))


def wait_everywhere(hub, name, expected):
    for cluster in AGENTS:
        wait_until(lambda c=cluster: items(hub, c, name) == expected, f"{cluster} has {expected}", LONG)


def use_every_path(hub, fake, name):
    """Scores, reports, conditions, a changed scorer, a failing one, a removed one."""
    url = serve(fake, name)
    fake.on(f"/{name}", results({"node": "n1"}, 7.9))
    hub.apply_scorer(name, full(url, scoreDimensionFormat="${node}"))
    wait_everywhere(hub, name, {"n1": 7})
    hub.wait_scorer(name, "Scoring", "True", deadline=LONG)
    wait_status(hub, name, lambda s: s["clusters"]["scoring"] == 2, "both are scoring", LONG)
    hub.wait_scorer(name, "Ready", "True")

    hub.apply_scorer(name, full(url, scoreDimensionFormat="${cluster}", scoreRange={"min": 0, "max": 10}))
    for cluster in AGENTS:
        wait_until(lambda c=cluster: items(hub, c, name) == {c: 58}, f"{cluster} has the changed scorer", LONG)

    fake.on(f"/{name}", plain("overloaded", 503))
    hub.wait_scorer(name, "Scoring", "False", deadline=LONG)
    wait_status(hub, name, lambda s: s["clusters"]["failing"] == 2, "both are failing", LONG)
    assert "503" in hub.scorer_condition(name, "Scoring")[2]

    hub.delete_scorer(name)
    for cluster in AGENTS:
        wait_until(lambda c=cluster: not score(hub, c, name), f"{cluster} has no object", LONG)


@contextlib.contextmanager
def controller_of(program, hub):
    with running_controller(hub.kube, "--leader-elect", start=False) as controller:
        controller.command[0] = program
        controller.start()
        yield controller


@contextlib.contextmanager
def agents_of(programs, hub):
    with contextlib.ExitStack() as stack:
        started = {}
        for cluster in AGENTS:
            agent = stack.enter_context(running_agent({}, *agent_flags(hub, cluster), start=False))
            agent.command[0] = programs[cluster]
            agent.start()
            started[cluster] = agent
        yield started


def test_controllers_and_agents(hub, fake, programs):
    """The hub is upgraded and taken back, the agents swap; a scorer that stays keeps its objects all the time."""
    for cluster in AGENTS:
        hub.add_cluster(cluster)
    hub.configure()
    fake.on("/stays", results({"node": "n1"}, 1))
    hub.apply_scorer("stays", full(serve(fake, "stays"), scoreDimensionFormat="${node}"))
    places = {c: (hub.kube, agent_namespace_of(c)) for c in AGENTS}
    with FakeWorkAgent(hub, places), agents_of(programs, hub) as agents:
        uids = set()
        for turn, version in enumerate(("before", "now", "before")):
            with controller_of(programs[version], hub):
                wait_everywhere(hub, "stays", {"n1": 1})
                use_every_path(hub, fake, f"s{turn}")
                hub.wait_scorer("stays", "Scoring", "True", deadline=LONG)
                uids |= {score(hub, c, "stays")["metadata"]["uid"] for c in AGENTS}
            for agent in agents.values():
                assert agent.status("stays")["failures"] == 0
                assert agent.scores("stays")
            if version == "now":
                swap(agents, programs)
        assert len(uids) == 2, "no change of version replaces an object"
        with controller_of(programs["now"], hub):
            hub.kubectl("delete", "dynamicscoringconfig", "dynamic-scoring-config", f"--timeout={LONG:.0f}s")
            assert hub.config() is None and hub.works() == {}
            for cluster in AGENTS:
                wait_until(lambda c=cluster: not score(hub, c, "stays"), f"{cluster} has no object", LONG)


def swap(agents, programs):
    """Each cluster gets the other version of the agent."""
    for agent, version in zip(agents.values(), reversed(AGENTS)):
        agent.process.end()
        agent.command[0] = programs[version]
        agent.start()
        agent.wait_scores("stays")


def test_what_agents_of_the_version_before_do_not_know(hub, fake, programs):
    """A scorer that they would refuse, and the whole list with it, is left out of their list; fields that they ignore are
    named. When such an agent is upgraded, it gets all."""
    for cluster in AGENTS:
        hub.add_cluster(cluster)
    hub.configure()
    for name, value in (("stays", 1), ("less", 2.5), ("calm", 3)):
        fake.on(f"/{name}", results({}, value))
    fake.on("/calm/now", results({}, 4))
    fake.on("/calm/$%7Bcluster%7D", results({}, 3))
    fake.on("/calm/${cluster}", results({}, 3))
    places = {c: (hub.kube, agent_namespace_of(c)) for c in AGENTS}
    with FakeWorkAgent(hub, places), agents_of(programs, hub) as agents, controller_of(programs["now"], hub):
        hub.apply_scorer("stays", full(serve(fake, "stays")))
        wait_everywhere(hub, "stays", {"stays": 1})

        hub.apply_scorer("less", full(serve(fake, "less"), scoreRange={"min": 10, "max": 0}))
        wait_until(lambda: items(hub, "now", "less") == {"less": 50}, "this version scales", LONG)
        words = (
            "selected for 1 cluster; agents on 1 of 2 clusters are too old for a scoreRange whose min is above its max and "
            "do not get this scorer: before"
        )
        assert hub.wait_scorer("less", "Distributed", "False", "AgentsOutdated", LONG, says=words)[2] == words
        assert hub.score_names("before") == ["stays"] and hub.score_names("now") == ["less", "stays"]

        calm = api_config("calm", source={"type": "None"}, scoring=scoring("calm", path="/calm/${cluster}"))
        hub.apply_scorer("calm", full(fake.on("/calm/config", answer(calm)), scoreTolerance=5))
        wait_until(lambda: items(hub, "now", "calm") == {"calm": 4}, "this version says who it is", LONG)
        wait_until(lambda: items(hub, "before", "calm") == {"calm": 3}, "the version before does not", LONG)
        words = (
            "agents on 1 of 2 clusters are too old for scoreTolerance and write every change: before; agents on 1 of 2 "
            "clusters are too old for ${cluster} in the scoring endpoint and send it as it is: before"
        )
        hub.wait_scorer("calm", "Distributed", "True", "ClusterIgnored", LONG, says=words)

        hub.configure(adjustments=[{"name": "more", "clusterName": "*", "scoreName": "stays", "add": 10}])
        wait_until(lambda: items(hub, "now", "stays") == {"stays": 11}, "this version adjusts", LONG)
        words = "agents on 1 of 2 clusters are too old for adjustments and write scores as they are: before"
        hub.wait_config("Distributed", "True", "AdjustmentsIgnored", LONG, says=words)
        assert items(hub, "before", "stays") == {"stays": 1} and agents["before"].status("stays")["failures"] == 0

        agents["before"].process.end()
        agents["before"].command[0] = programs["now"]
        agents["before"].start()
        wait_until(lambda: items(hub, "before", "less") == {"less": 50}, "the upgraded agent gets it, too", LONG)
        hub.wait_scorer("less", "Distributed", "True", "Distributed", LONG)
        hub.wait_scorer("calm", "Distributed", "True", "Distributed", LONG)
        wait_until(lambda: items(hub, "before", "stays") == {"stays": 11}, "the upgraded agent adjusts, too", LONG)
        hub.wait_config("Distributed", "True", "Distributed", LONG)


@pytest.mark.parametrize("first, second", [("before", "now"), ("now", "before")])
def test_a_spool(tmp_path, programs, first, second):
    """What one version has in its spool at kill -9, the other sends, once and in order."""
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(20)) as scoring_api:
        receiver.down()
        with remote.Agent(tmp_path, scoring_api, [remote.endpoint(receiver)]) as agent:
            agent.kill()
            agent.program = programs[first]
            agent.start()
            remote.wait_for("a queue", lambda: agent.remote("samples_pending") >= 60, alive=agent.alive)
            agent.kill()
            waiting = export(folder_of(agent))
            agent.program = programs[second]
            agent.start()
            receiver.up()
            agent.caught_up(scoring_api)
        stream = receiver.stream()
        remote.in_order(receiver.stream(accepted=False))
        assert len(waiting) == 20
        for labels, samples in waiting.items():
            arrived = [(remote_wire.double(s.bits), s.timestamp) for s in stream[labels]]
            assert [(float(v), t) for v, t in samples] == arrived[: len(samples)]
