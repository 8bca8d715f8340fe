"""What fails on a cluster can be read without logging in there: in conditions on the hub, and in the ConfigMap
dynamic-scoring-status."""

from lib.agent import summary
from lib.fake import answer, plain, results
from lib.kube import CLUSTER, SCORES, seconds_until


def test_the_engines_own_words(kube, fake, start_agent):
    source = fake.on(
        "/api/v1/query_range",
        answer({"status": "error", "errorType": "bad_data", "error": "parse error: unexpected end"}, 400),
    )
    kube.configure(summary("a", fake.on("/s", results({}, 1)), source, interval=600))
    agent = start_agent({}, *kube.flags())
    status, reason, message = kube.wait_condition("a", "Scored", "False")
    assert reason == "SourceFailed"
    assert message.startswith(f"source failed, {source}: bad_data: parse error: unexpected end")
    assert kube.items("a") == {}
    agent.wait_until(lambda: kube.reported("a").get("state") == "failing", "the report has it")
    assert kube.reported("a")["error"].startswith(f"source failed, {source}: bad_data: parse error")
    assert kube.reported("a")["lastSuccess"] is None


def test_old_scores_stay_with_a_condition_until_they_are_too_old(kube, fake, start_agent):
    kube.configure(summary("a", fake.on("/s", results({}, 1)), interval=5))
    start_agent({}, *kube.flags())
    kube.wait_items("a", {"a": 1})
    fake.on("/s", plain("overload", 500))
    status, reason, message = kube.wait_condition("a", "Scored", "False")
    assert (reason, kube.items("a")) == ("ScoringFailed", {"a": 1})
    assert "overload" in message and "stay until validUntil" in message
    kube.wait_items("a", {})
    assert "validUntil" not in kube.object("a")["status"]
    fake.on("/s", results({}, 2))
    kube.wait_items("a", {"a": 2})
    kube.wait_condition("a", "Scored", "True")


def test_fallback_score(kube, fake, start_agent):
    """Placement counts a missing score as 0, which beats a negative one."""
    url = fake.on("/s", results({"node": "x"}, 10, {"node": "y"}, 20))
    kube.configure(
        summary("a", url, interval=4, scoreDimensionFormat="${node}", fallbackScore=-100),
        summary("never", fake.on("/t", plain("no", 500)), interval=600, fallbackScore=-50),
    )
    agent = start_agent({}, *kube.flags())
    kube.wait_items("never", {"never": -50})
    kube.wait_items("a", {"x": 10, "y": 20})
    fake.on("/s", plain("overload", 500))
    kube.wait_items("a", {"x": -100, "y": -100})
    assert "fallbackScore is used" in kube.condition("a", "Scored")[2]
    assert seconds_until(kube.object("a")["status"]["validUntil"]) > 0
    agent.process.kill()
    agent.start()
    agent.wait_rounds("a", 1)
    kube.wait_items("a", {"x": -100, "y": -100})


def test_scores_that_are_still_valid_survive_a_restart_into_a_failure(kube, fake, start_agent):
    kube.configure(summary("a", fake.on("/s", results({}, 1)), interval=600))
    agent = start_agent({}, *kube.flags())
    kube.wait_items("a", {"a": 1})
    until = kube.object("a")["status"]["validUntil"]
    agent.process.kill()
    fake.on("/s", plain("overload", 500))
    agent.start()
    kube.wait_condition("a", "Scored", "False")
    assert kube.items("a") == {"a": 1}
    assert kube.object("a")["status"]["validUntil"] == until


def test_a_user_without_rights_gets_a_clear_word(kube, fake, start_agent):
    kube.configure(summary("a", fake.on("/s", results({}, 1)), interval=600))
    agent = start_agent({}, *kube.flags(hub=kube.kubeconfig("nobody")))
    agent.wait_until(lambda: kube.reported("a").get("placementError"), "the report says so")
    assert 'forbidden: cannot create resource "addonplacementscores"' in kube.reported("a")["placementError"]
    agent.wait_until(lambda: "cannot list" in kube.report()["hubError"], "the report says that it cannot list")
    assert agent.scores("a") == [({}, 1)]
    agent.wait_metric("dynamic_scoring_placement_writes_total", 1, operation="create", result="forbidden")
    agent.wait_metric_is(0, "dynamic_scoring_kubernetes_up", server="hub")


def test_nothing_is_written_while_nothing_changes(kube, fake, start_agent):
    kube.configure(summary("a", fake.on("/s", results({}, 1)), interval=10))
    agent = start_agent({}, *kube.flags())
    kube.wait_items("a", {"a": 1})
    first = kube.object("a")
    agent.wait_rounds("a", 2)
    assert kube.object("a")["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    agent.wait_until(lambda: kube.object("a") != first, "validUntil is half used up")
    again = kube.object("a")
    assert again["status"]["validUntil"] > first["status"]["validUntil"]
    assert again["status"]["conditions"] == first["status"]["conditions"]
    assert len(kube.call("GET", SCORES.format(CLUSTER))["items"]) == 1
