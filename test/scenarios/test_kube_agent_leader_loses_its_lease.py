"""A leader that cannot renew its Lease stops scoring by itself, before another may take over."""

import signal

from lib import remote
from lib.replicas import LEADER, SERIES, check_received, pair_of, shows, values
from lib.replicas import a_receiver, a_scoring_api, leader_and_standby, replicas  # noqa: F401 (fixtures)
from lib.wait import LONG, wait_until


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
