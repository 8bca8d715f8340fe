"""One of two replicas of the agent scores. When it is killed, stopped or loses its Lease, the other takes over; series
never double, and neither a sample nor a marker is sent that the other contradicts."""

import json
import signal
import time

import pytest

from lib import remote
from lib.kube import NAMESPACE
from lib.remote_wire import STALE, double
from lib.wait import LONG, wait_until

LEADER = "dynamic_scoring_leader"
LEASE = f"apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/dynamic-scoring-agent"
AFTER_A_KILL, AFTER_A_STOP = 20, 3  # seconds, as promised
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
    """Received scores of the first series in order, None for a stale marker; no time goes backwards or has two values."""
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


def test_killed(kube, api, receiver, replica):
    """The replicas share a volume: the standby opens the spool when it leads."""
    leader, standby = pair_of(replica("a", storage="both"), replica("b", storage="both"))
    held = kube.find(LEASE)["spec"]
    leader.process.send(signal.SIGKILL)
    leader.process.wait()
    killed = time.monotonic()
    standby.wait_until(lambda: shows(standby), "the other scores", LONG)
    took = time.monotonic() - killed
    assert took < AFTER_A_KILL
    now = kube.find(LEASE)["spec"]
    assert now["holderIdentity"] != held["holderIdentity"]
    assert now["leaseTransitions"] == held["leaseTransitions"] + 1
    leader.start()
    leader.wait_metric_is(0, LEADER)
    standby.wait_rounds("s", 3)
    assert not shows(leader) and shows(standby)
    assert standby.status()["remoteWrite"][0]["spool"] and "cannot open the spool" not in standby.log()
    check_received(api, receiver, handovers=2)
    print(f"took over {took:.1f} s after the kill")


def test_stopped(kube, api, receiver, pair):
    """A graceful stop releases the Lease: the other replica need not wait for it to expire."""
    leader, standby = pair
    for _ in range(2):
        leader.process.send(signal.SIGTERM)
        stopped = time.monotonic()
        standby.wait_until(lambda: standby.metric(LEADER) == 1, "the other leads")
        took = time.monotonic() - stopped
        assert took < AFTER_A_STOP
        print(f"took over {took:.1f} s after the stop")
        assert leader.process.wait() == 0
        standby.wait_scores("s")
        leader.start()
        leader, standby = standby, leader
    check_received(api, receiver, handovers=4)


def test_the_hub_sees_no_handover(kube, pair):
    """The new leader finds the scores on the hub and continues them."""
    leader, standby = pair
    kube.configure({**json.loads(kube.configmap("dynamic-scoring-config")["data"]["summaries"])[0], "scoringInterval": 600,
                    "scoreRange": {"min": -1e9, "max": 1e9}})
    wait_until(lambda: kube.items("s") == {"s": 0}, "all rounds have one score")
    leader.wait_metric_is(0, "dynamic_scoring_placement_behind")
    wait_until(lambda: kube.reported("s").get("state") == "ok", "it is reported")
    before = kube.object("s")
    leader.process.send(signal.SIGTERM)
    standby.wait_scores("s")
    wait_until(lambda: kube.reported("s").get("state") == "ok", "the new leader reports")
    standby.wait_metric_is(0, "dynamic_scoring_placement_behind")
    after = kube.object("s")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["validUntil"] >= before["status"]["validUntil"]
    assert after["status"]["conditions"] == before["status"]["conditions"], "nothing has changed"
    assert writes(standby) <= {("status", "ok"): 1}.items()
    leader.process.wait()
    leader.start()


def test_a_lost_lease_stops_scoring(kube, api, receiver, pair):
    """Without the API server no replica scores, and the first to renew the Lease goes on; queued samples are sent."""
    leader, standby = pair
    receiver.plan = lambda arrival: remote.Answer(503)
    wait_until(lambda: leader.status()["remoteWrite"][0]["samplesPending"] > 0, "samples are queued")
    kube.pause()
    try:
        leader.wait_until(lambda: leader.metric(LEADER) == 0, "it has given up")
        assert not shows(leader) and not shows(standby) and standby.metric(LEADER) == 0
        assert leader.get("/-/ready").status == 200
        rounds, queued = len(api.served["s"]), leader.status()["remoteWrite"][0]["samplesPending"]
        assert queued >= SERIES
        receiver.plan = lambda arrival: remote.Answer()
        wait_until(lambda: not leader.status()["remoteWrite"], "all is sent, and the endpoint is gone")
        assert len(api.served["s"]) == rounds
    finally:
        kube.resume()
    wait_until(lambda: leader.metric(LEADER) + standby.metric(LEADER) == 1, "one leads again", LONG)
    leader, standby = pair_of(leader, standby)
    leader.wait_rounds("s", 2)
    assert not shows(standby)
    check_received(api, receiver, handovers=1)


def test_a_paused_leader_sends_nothing_new(kube, api, receiver, replica):
    """It shares its spool with the other, who waits for it to be given up."""
    leader, standby = pair_of(replica("a", storage="both"), replica("b", storage="both"))
    before = len(values(receiver))
    wait_until(lambda: len(values(receiver)) > before, "a round was sent just now")
    leader.process.send(signal.SIGSTOP)
    try:
        standby.wait_until(lambda: shows(standby), "the other scores", LONG)
        standby.wait_log("spool is in use by another process")
    finally:
        leader.process.send(signal.SIGCONT)
    leader.wait_metric_is(0, LEADER)
    standby.wait_until(lambda: standby.status()["remoteWrite"][0]["spool"], "it has the spool")
    standby.wait_rounds("s", standby.status("s")["rounds"] + 2)
    assert not shows(leader) and shows(standby)
    check_received(api, receiver, handovers=2)


def test_a_standby_has_its_configuration_and_serves_no_series(kube, api, receiver, pair):
    leader, standby = pair
    assert standby.get("/-/ready").status == 200
    standby.wait_log('msg="standing by"')
    status = standby.status()
    assert not status["leading"] and status["election"]["holder"] == holder(kube) != status["election"]["identity"]
    assert leader.status()["leading"] and leader.status()["election"]["identity"] == holder(kube)
    assert status["scorers"] == [] and status["remoteWrite"] == []
    assert not standby.metrics().all("dynamic_score") and not standby.metrics().all("dynamic_score_timestamp_seconds")
    kube.configure(text="[nonsense")
    for one in pair:  # both see that it is invalid; the leader reports it
        one.wait_metric_is(0, "dynamic_scoring_config_last_reload_successful")
        assert one.status()["config"]["problems"]
    wait_until(lambda: kube.report().get("configurationInForce") is False, "the leader reports it")
    kube.configure(api.summary("s"), api.summary("t"))
    standby.wait_metric_is(1, "dynamic_scoring_config_last_reload_successful")
    leader.wait_rounds("t")
    wait_until(lambda: kube.reported("t"), "the leader reports the new scorer")
    assert standby.reload().status == 200 and standby.status()["scorers"] == []
    standby.process.send(signal.SIGHUP)
    standby.wait_metric("dynamic_scoring_config_reloads_total", at_least=5, result="success")
    assert {s["scoreName"] for s in kube.report()["scorers"]} == {"s", "t"} and not shows(standby)
    assert len(kube.objects()) == 2
    assert not writes(standby)


def test_secrets_are_read_in_advance(kube, api, fake, replica):
    """The first round of a new leader has its tokens."""
    kube.secret("api", token="dummy-token-1234")
    kube.configure({**api.summary("s"), "scoringEndpointAuthName": "api", "scoringEndpointAuthKey": "token"})
    leader, standby = pair_of(replica("a"), replica("b"))
    leader.process.send(signal.SIGTERM)
    standby.wait_scores("s")
    assert "ecret" not in standby.log().split("msg=leading")[1]
    leader.process.wait()
    leader.start()


@pytest.mark.parametrize("addon, lease", [("x", "x-agent"), ("My_Add.On", "my-add.on-agent")])
def test_the_lease_is_named_after_the_addon(kube, start_agent, addon, lease):
    start_agent({}, *kube.flags(managed=kube.kubeconfig("admin")), "--leader-elect", f"--addon-name={addon}")
    path = LEASE.rsplit("/", 1)[0] + f"/{lease}"
    wait_until(lambda: kube.find(path), "it exists")
    kube.delete(path)
