"""Two replicas of the agent, a scoring API that counts its rounds, and what a receiver got of them."""

import pytest

from lib import remote
from lib.kube import NAMESPACE
from lib.remote_wire import STALE, double
from lib.wait import wait_until

LEADER = "dynamic_scoring_leader"
LEASE = f"apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/dynamic-scoring-agent"
SERIES = 2


@pytest.fixture(name="receiver")
def a_receiver():
    with remote.Receiver() as receiver:
        yield receiver


@pytest.fixture(name="api")
def a_scoring_api():
    with remote.Scoring(s=remote.counted(SERIES)) as api:
        yield api


@pytest.fixture(name="replica")
def replicas(kube, api, receiver, start_agent, tmp_path):
    """replica(name, *flags): one more replica, with a spool of its own."""
    kube.delete(LEASE)
    kube.configure(api.summary("s"))

    def start(name, *flags, storage=None):
        config = {"remoteWrite": [remote.endpoint(receiver)]}
        path = f"--storage.path={tmp_path / (storage or name)}"
        return start_agent(config, *kube.flags(), "--leader-elect", path, *flags)

    return start


@pytest.fixture(name="pair")
def leader_and_standby(replica):
    return pair_of(replica("a"), replica("b"))


def pair_of(*both):
    wait_until(lambda: sum(one.metric(LEADER) for one in both) == 1, "one leads")
    leader, standby = sorted(both, key=lambda one: -one.metric(LEADER))
    leader.wait_scores("s")
    return leader, standby


def shows(agent):
    return bool(agent.scores("s"))


def writes(agent):
    """The items of {(operation, result): number}."""
    found = agent.metrics().all("dynamic_scoring_placement_writes_total")
    return {(labels["operation"], labels["result"]): n for labels, n in found}.items()


def holder(kube):
    return (kube.find(LEASE) or {"spec": {}})["spec"].get("holderIdentity", "")


def values(receiver):
    """Received scores of the first series in order, None for a stale marker. No time goes back or has two values."""
    stream = receiver.stream()
    remote.in_order(stream)
    found = next((samples for labels, samples in stream.items() if ("ds_node", "n00000") in labels), [])
    return [None if s.bits == STALE else double(s.bits) for s in found]


def check_received(api, receiver, handovers):
    """Nothing but the rounds that the handovers cut short is missing, and no series has ended."""
    rounds = len(api.served["s"])
    wait_until(lambda: values(receiver)[-1] >= rounds - 1, "the last round has arrived")
    got = values(receiver)
    assert None not in got, got
    missing = set(range(rounds)) - set(got)
    assert len(missing) <= handovers, missing
