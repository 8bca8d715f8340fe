"""One of two replicas of the agent scores. When it is killed or stopped, the other takes over; series never double, and
neither a sample nor a marker is sent that the other contradicts."""

import json
import signal
import time

import pytest

from lib.accounts import RBAC
from lib.browser import VISIBLE_TEXT, shared_browser  # noqa: F401 (a fixture)
from lib.kube import NAMESPACE
from lib.replicas import LEADER, LEASE, check_received, holder, pair_of, shows, writes
from lib.replicas import a_receiver, a_scoring_api, leader_and_standby, replicas  # noqa: F401 (fixtures)
from lib.wait import DEADLINE, LONG, wait_until

ROLES = f"{RBAC}/namespaces/{NAMESPACE}/roles"
AFTER_A_KILL, AFTER_A_STOP = DEADLINE / 2, DEADLINE / 6  # promised are 20 s and 3 s, on a machine that is not busy


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
    summary = json.loads(kube.configmap("dynamic-scoring-config")["data"]["summaries"])[0]
    kube.configure({**summary, "scoringInterval": 600, "scoreRange": {"min": -1e9, "max": 1e9}})
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


def test_adjustments_stay_in_force(kube, pair):
    """The new leader writes nothing that they do not change, not even for a moment, and takes them back when they end."""
    leader, standby = pair
    summary = json.loads(kube.configmap("dynamic-scoring-config")["data"]["summaries"])[0]
    scorer = {**summary, "scoringInterval": 600, "scoreRange": {"min": -1e9, "max": 1e9}}
    kube.configure(scorer, adjustments=[{"name": "less", "scoreName": "*", "add": -30, "reason": "disk"}])
    wait_until(lambda: kube.items("s") == {"s": -30}, "the items are adjusted")
    leader.wait_metric_is(0, "dynamic_scoring_placement_behind")
    before = kube.object("s")
    leader.process.send(signal.SIGTERM)
    seen = []
    wait_until(lambda: seen.append(kube.items("s")) or standby.scores("s"), "the other leads and scores")
    standby.wait_metric_is(0, "dynamic_scoring_placement_behind")
    after = kube.object("s")
    assert all(items == {"s": -30} for items in seen)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["status"]["scores"] == before["status"]["scores"]
    assert after["status"]["conditions"] == before["status"]["conditions"], "nothing has changed"
    assert writes(standby) <= {("status", "ok"): 1}.items()
    kube.configure(scorer, adjustments=[])
    wait_until(lambda: kube.items("s") == {"s": 0}, "the new leader takes it back")
    assert kube.condition("s", "Adjusted") is None
    leader.process.wait()
    leader.start()


def test_a_standby_has_its_configuration_and_serves_no_series(kube, api, receiver, pair):
    leader, standby = pair
    assert standby.get("/-/ready").status == 200
    standby.wait_log('msg="standing by"')
    status = standby.status()
    assert not status["leading"] and status["election"]["holder"] == holder(kube) != status["election"]["identity"]
    assert leader.status()["leading"] and leader.status()["election"]["identity"] == holder(kube)
    assert status["scorers"] == []
    standby.wait_until(lambda: standby.status()["remoteWrite"] == [], "it has looked into its spool, and closed it")
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


def test_a_standby_shows_whether_it_can_read_the_lease(kube, pair):
    """Although no round of its own renders its metrics: ClusterApiAway looks at this one."""
    up = ("dynamic_scoring_kubernetes_up", {"resource": "leases", "server": "cluster"})
    standby = pair[1]
    standby.wait_metric_is(1, up[0], **up[1])
    rules = kube.find(f"{ROLES}/dynamic-scoring")["rules"]
    try:
        kube.apply(ROLES, "dynamic-scoring", {"rules": [r for r in rules if "leases" not in r["resources"]]})
        standby.wait_metric_is(0, up[0], **up[1])
    finally:
        kube.apply(ROLES, "dynamic-scoring", {"rules": rules})
    standby.wait_metric_is(1, up[0], **up[1])


def test_the_page_of_a_standby_names_the_leader(kube, pair, browser):
    leader, standby = pair
    standby.wait_log('msg="standing by"')
    browser.open(standby.url)
    text = browser.run(VISIBLE_TEXT)
    assert f"Standing by. {holder(kube)} leads. Only the leader scores; see its page." in text
    assert "None here: they run on the leader." in text
    browser.open(leader.url)
    assert "Standing by" not in browser.run(VISIBLE_TEXT)


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
