"""Times on the hub are by the clock of its API server, however wrong those of agents and of the controller are."""

import glob
import json
import time

import pytest
from lib.agent import summary
from lib.fake import results
from lib.kube import seconds_until
from lib.process import environment
from lib.scorers import distributed
from lib.wait import LONG, wait_until

BEHIND, AHEAD = -120, 120


@pytest.fixture(name="clock")
def wrong_clock(tmp_path):
    """clock.set(seconds): by how much it is wrong; clock.env: for the program that has it."""
    found = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
    if not found:
        pytest.skip("needs Debian's faketime")

    class Clock:
        file = tmp_path / "offset"
        env = environment(
            LD_PRELOAD=found[0],
            FAKETIME_TIMESTAMP_FILE=str(file),
            FAKETIME_NO_CACHE="1",
            FAKETIME_DONT_FAKE_MONOTONIC="1",
            ASAN_OPTIONS="verify_asan_link_order=0",
        )

        def set(self, seconds):
            self.file.write_text(f"{seconds:+d}")

    return Clock()


def kubeconfig(kube, user, folder):
    """Without the authority: by a clock that is behind, a certificate of just now is not valid yet."""
    path = kube.own_kubeconfig(user, folder)
    text = path.read_text()
    assert "certificate-authority: ca.crt" in text
    path.write_text(text.replace("certificate-authority: ca.crt", "insecure-skip-tls-verify: true"))
    return path


def seconds_since(text):
    return -seconds_until(text.split(".")[0].rstrip("Z") + "Z")


@pytest.mark.parametrize("wrong, reason", [(BEHIND, "ClockBehind"), (AHEAD, "ClockAhead")])
def test_an_agent(kube, fake, start_agent, clock, tmp_path, wrong, reason):
    clock.set(wrong)
    kube.configure(summary("a", fake.on("/s", results({}, 1)), interval=10))
    places = {"hub": kubeconfig(kube, "hub", tmp_path), "managed": kubeconfig(kube, "managed", tmp_path)}
    agent = start_agent({}, *kube.flags(**places), env=clock.env)
    kube.wait_items("a", {"a": 1})
    assert 0 < seconds_until(kube.object("a")["status"]["validUntil"]) <= 30 + 6
    found = kube.wait_condition("a", "ClockSkewed", "True", LONG)
    assert found[1] == reason and "is 1" in found[2] and "that of the hub's API server" in found[2]
    scored = next(c for c in kube.object("a")["status"]["conditions"] if c["type"] == "Scored")
    assert -10 < seconds_since(scored["lastTransitionTime"]) < 60
    agent.wait_until(lambda: kube.reported("a").get("lastSuccess"), "the report has it")
    agent.wait_until(lambda: kube.report().get("clockOffsetSeconds"), "and by how much it is wrong")
    assert abs(kube.report()["clockOffsetSeconds"] + wrong) < 10
    assert -10 < seconds_since(kube.reported("a")["lastSuccess"]) < 60
    offset = agent.metric("dynamic_scoring_kubernetes_clock_offset_seconds", server="hub")
    assert abs(offset + wrong) < 10
    # Not what the cluster's own Prometheus sees.
    assert abs(agent.metric("dynamic_score_timestamp_seconds", ds_score_name="a") - time.time() - wrong) < 60

    clock.set(0)
    assert kube.wait_condition("a", "ClockSkewed", "False", LONG)[1] == "ClockInSync"
    agent.wait_until(lambda: "clockOffsetSeconds" not in kube.report(), "the report agrees")
    wait_until(lambda: 0 < seconds_until(kube.object("a")["status"]["validUntil"]) <= 30 + 6, "scores end in time", LONG)


@pytest.mark.parametrize("wrong", [-3600, 3600])
def test_an_adjustment_ends(kube, fake, start_agent, clock, tmp_path, wrong):
    """Neither before nor after its `until`, although the agent's clock has long passed it, or is an hour away from it."""
    clock.set(wrong)
    ends = int(time.time()) + 20
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(ends))
    scorer = summary("a", fake.on("/s", results({}, 1)), interval=600)
    kube.configure(scorer, adjustments=[{"name": "hour", "scoreName": "*", "set": -100, "until": until}])
    places = {"hub": kubeconfig(kube, "hub", tmp_path), "managed": kubeconfig(kube, "managed", tmp_path)}
    start_agent({}, *kube.flags(**places), env=clock.env)
    kube.wait_items("a", {"a": -100})
    kube.wait_items("a", {"a": 1}, LONG)
    assert time.time() > ends - 2 and kube.condition("a", "Adjusted") is None
    assert len(fake.requests("/s")) == 1


def test_a_right_clock_is_not_mentioned(kube, fake, start_agent):
    kube.configure(summary("a", fake.on("/s", results({}, 1)), interval=600))
    agent = start_agent({}, *kube.flags())
    kube.wait_condition("a", "Scored", "True")
    assert kube.condition("a", "ClockSkewed") is None
    assert agent.metric("dynamic_scoring_kubernetes_clock_offset_seconds", server="hub") == 0
    agent.wait_until(lambda: kube.reported("a"), "there is a report")
    assert "clockOffsetSeconds" not in kube.report()


def report(seconds_ago, lives, **more):
    def at(seconds):
        return time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() + seconds))

    scorer = {"scoreName": "cpu", "state": "ok", "lastSuccess": at(-seconds_ago), "validUntil": at(lives - seconds_ago)}
    return json.dumps({"configurationInForce": True, "scorers": [scorer], **more})


def test_a_controller(hub, fake, start_controller, clock):
    """Ahead by longer than scores live: they have not expired, and nothing on the hub is in the future."""
    clock.set(3600)
    distributed(hub, fake, start_controller, env=clock.env)
    hub.set_feedback("c1", report(0, 600))
    hub.wait_scorer("s", "Ready", "True")
    for condition in hub.scorer_status("s")["conditions"]:
        assert seconds_since(condition["lastTransitionTime"]) > -10
    hub.set_feedback("c1", report(120, 60, clockOffsetSeconds=120))
    words = "; the agent's clock is 120 s behind that of the hub's API server"
    assert words in hub.wait_scorer("s", "Scoring", "Unknown", "Silent", LONG)[2]
