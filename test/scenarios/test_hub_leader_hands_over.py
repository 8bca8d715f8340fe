"""One of two replicas is active; if it is killed, the other takes over when the Lease expires, and nothing is written
twice."""

import pytest

from lib.fake import answer
from lib.hub import LEASES
from lib.scorers import api_config, full, serve, writes, writes_at_rest
from lib.wait import LONG, wait_until

LEADER = "dynamic_scoring_hub_leader"


@pytest.fixture(name="replicas")
def two_replicas(hub, fake, start_controller):
    """(leader, standby)"""
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("s", full(serve(fake, "/config", "cpu")))
    both = [start_controller("--leader-elect") for _ in range(2)]
    wait_until(lambda: sum(c.metric(LEADER) for c in both) == 1, "one leads")
    both.sort(key=lambda c: -c.metric(LEADER))
    hub.wait_scorer("s", "Ready", "Unknown", "Waiting")
    return both


def probes(controller):
    return sum(v for _, v in controller.metrics().all("dynamic_scoring_hub_probes_total"))


def test_only_one_works(hub, fake, replicas):
    leader, standby = replicas
    fake.on("/config", answer(api_config("memory")))
    hub.wait_scores("c1", "memory")
    wait_until(lambda: writes(leader) > 0 and probes(leader) > 0, "it is counted")
    assert writes(standby) == 0 and probes(standby) == 0
    assert standby.metric(LEADER) == 0
    assert standby.health("/readyz").status == 200  # it is as good as it can be
    holder = hub.kube.find(f"{LEASES}/dynamic-scoring-controller")["spec"]["holderIdentity"]
    standby.wait_until(lambda: 'msg="standing by"' in standby.log() and f"leader={holder}" in standby.log(), "it says so")
    assert "standing by" not in leader.log() and "no longer leading" not in standby.log()


def test_killed(hub, fake, replicas):
    leader, standby = replicas
    lost = hub.kube.find(f"{LEASES}/dynamic-scoring-controller")["spec"]
    leader.kill()
    fake.on("/config", answer(api_config("memory")))
    hub.wait_scores("c1", "memory", deadline=LONG)
    held = hub.kube.find(f"{LEASES}/dynamic-scoring-controller")["spec"]
    assert held["holderIdentity"] != lost["holderIdentity"]
    assert held["leaseTransitions"] == lost["leaseTransitions"] + 1
    wait_until(lambda: standby.metric(LEADER) == 1, "it is told")
    leader.start()
    leader.wait_until(lambda: leader.metric(LEADER) == 0, "the first is the standby now")
    hub.wait_scorer("s", "Ready", "Unknown", "Waiting")
    assert writes(leader) == 0


def test_stopped(hub, fake, replicas):
    """A graceful stop releases the Lease: the other replica need not wait for it to expire."""
    leader, standby = replicas
    lost = hub.kube.find(f"{LEASES}/dynamic-scoring-controller")["spec"]["holderIdentity"]
    leader.stop()
    assert hub.kube.find(f"{LEASES}/dynamic-scoring-controller")["spec"].get("holderIdentity") != lost
    wait_until(lambda: standby.metric(LEADER) == 1, "the other leads")
    fake.on("/config", answer(api_config("memory")))
    hub.wait_scores("c1", "memory")
    leader.start()  # for the fixture to end


def test_hand_over_changes_nothing(hub, replicas):
    leader, standby = replicas
    objects = (lambda: hub.work("c1"), lambda: hub.scorer("s"), hub.config)
    hub.wait_config("Ready", "True")
    wait_until(lambda: hub.scorer_status("s")["clusters"]["upToDate"] == 1, "all is counted")
    before = [o()["metadata"]["resourceVersion"] for o in objects]
    leader.kill()
    wait_until(lambda: standby.metric(LEADER) == 1, "the other leads", LONG)
    wait_until(lambda: probes(standby) >= 4, "it has looked at the scoring API")
    assert [o()["metadata"]["resourceVersion"] for o in objects] == before
    assert writes(standby) == 0


def test_a_paused_leader_writes_nothing_afterwards(hub, fake, replicas):
    """Paused for longer than its Lease, it notices that it lost the lead before it writes anything."""
    leader, standby = replicas
    hub.wait_config("Ready", "True")
    wait_until(lambda: hub.scorer_status("s")["clusters"]["upToDate"] == 1, "all is counted")
    before = writes_at_rest(leader)
    assert before > 0
    leader.process.send(19)  # SIGSTOP
    try:
        wait_until(lambda: standby.metric(LEADER) == 1, "the other leads", LONG)
        fake.on("/config", answer(api_config("memory")))
        hub.wait_scores("c1", "memory")
    finally:
        leader.process.send(18)  # SIGCONT
    leader.wait_until(lambda: leader.metric(LEADER) == 0, "it has noticed")
    # Its watches go on, and it sees what the other has written meanwhile.
    leader.wait_until(lambda: [s["scoreName"] for s in leader.status()["scorers"]] == ["memory"], "it follows again")
    assert writes(leader) == before
    assert hub.score_names("c1") == ["memory"]
