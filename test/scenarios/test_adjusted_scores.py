"""The items of an AddOnPlacementScore are adjusted as the hub says: in order, also of a fallback, until the time given, and
without a round. Series stay what the scoring API said."""

import datetime
import json

from lib.agent import summary
from lib.fake import plain, results
from lib.kube import CLUSTER
from lib.wait import LONG, wait_until


def entry(name, score="*", **more):
    return {"name": name, "scoreName": score, **more}


def test_in_their_order_without_a_round(kube, fake, start_agent):
    url = fake.on("/s", results({"node": "a"}, 40, {"node": "b"}, -90))
    scorer = summary("s", url, interval=600, scoreDimensionFormat="${node}")
    other = summary("other", fake.on("/o", results({}, 7)), interval=600)
    kube.configure(scorer, other)
    agent = start_agent({}, *kube.flags())
    kube.wait_items("s", {"a": 40, "b": -90})

    kube.configure(scorer, other, adjustments=[entry("slow", "s", add=-30, reason="new kernel"), entry("no", "nothing", set=1)])
    kube.wait_items("s", {"a": 10, "b": -100})
    assert kube.wait_condition("s", "Adjusted", "True") == ("True", "Adjusted", '"slow" adds -30: new kernel')
    assert kube.condition("s", "Clamped")[0] == "False", "the scoring API's own values are in range"
    assert ({"node": "a"}, 40) in agent.scores("s"), "series stay"
    kube.wait_items("other", {"other": 7})
    assert kube.condition("other", "Adjusted") is None

    kube.configure(scorer, other, adjustments=[entry("slow", "s", add=-30), entry("out", set=-100)])
    kube.wait_items("s", {"a": -100, "b": -100})
    kube.wait_items("other", {"other": -100})
    assert kube.condition("s", "Adjusted")[2] == '"slow" adds -30; "out" sets -100'

    kube.configure(scorer, other)
    kube.wait_items("s", {"a": 40, "b": -90})
    kube.wait_items("other", {"other": 7})
    assert kube.condition("s", "Adjusted") is None
    assert len(fake.requests("/s")) == 1, "no round was needed"


def test_it_ends_by_itself(kube, fake, start_agent):
    scorer = summary("s", fake.on("/s", results({}, 40)), interval=600)
    until = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=6)
    entries = [entry("hour", set=-100, until=until.strftime("%Y-%m-%dT%H:%M:%SZ")), entry("stays", add=1)]
    kube.configure(scorer, adjustments=entries)
    start_agent({}, *kube.flags())
    kube.wait_items("s", {"s": -99})
    kube.wait_items("s", {"s": 41}, LONG)
    assert kube.condition("s", "Adjusted")[2] == '"stays" adds 1'
    assert len(fake.requests("/s")) == 1


def test_a_fallback_is_adjusted_too(kube, fake, start_agent):
    """A blocked region stays blocked when its source fails. An object without items gets none."""
    down = fake.on("/s", plain("out of order", 500))
    kube.configure(
        summary("s", down, fallbackScore=20), summary("none", down), adjustments=[entry("blocked", set=-100)]
    )
    start_agent({}, *kube.flags())
    kube.wait_items("s", {"s": -100})
    kube.wait_condition("none", "Scored", "False")
    assert not kube.items("none") and kube.condition("none", "Adjusted") is None


def test_after_a_restart_they_stay_until_the_first_round(kube, fake, start_agent):
    url = fake.on("/s", results({}, 40))
    scorer = summary("s", url, interval=600)
    kube.configure(scorer, adjustments=[entry("slow", add=-30)])
    agent = start_agent({}, *kube.flags())
    kube.wait_items("s", {"s": 10})
    agent.process.kill()
    fake.on("/s", plain("out of order", 500))
    agent.start()
    kube.wait_condition("s", "Scored", "False")
    assert kube.items("s") == {"s": 10} and kube.condition("s", "Adjusted")[0] == "True"


def test_after_a_restart_another_writers_words_are_kept(kube, fake, start_agent):
    """Whatever stands in the condition that is found, also the 32 KiB that the API server takes."""
    scorer = summary("s", fake.on("/s", results({}, 40)), interval=600)
    kube.configure(scorer, adjustments=[entry("slow", add=-30)])
    agent = start_agent({}, *kube.flags())
    kube.wait_items("s", {"s": 10})
    agent.process.kill()
    words = '"é"' * 8000
    conditions = kube.object("s")["status"]["conditions"]
    next(c for c in conditions if c["type"] == "Adjusted")["message"] = words
    patch = json.dumps({"status": {"conditions": conditions}})
    kube.kubectl("patch", "addonplacementscore", "s", f"--namespace={CLUSTER}", "--subresource=status", "--type=merge", f"--patch={patch}")
    fake.on("/s", plain("out of order", 500))
    agent.start()
    kube.wait_condition("s", "Scored", "False")
    assert kube.items("s") == {"s": 10} and kube.condition("s", "Adjusted")[2] == words


def test_after_a_restart_a_region_goes_out_without_a_round(kube, fake, start_agent):
    """The scores found on the hub are adjusted, too, where nothing has adjusted them before the start."""
    scorer = summary("s", fake.on("/s", results({}, 40)), interval=600)
    kube.configure(scorer)
    agent = start_agent({}, *kube.flags())
    kube.wait_items("s", {"s": 40})
    until = kube.object("s")["status"]["validUntil"]
    agent.process.kill()
    fake.on("/s", plain("out of order", 500))
    agent.start()
    kube.wait_condition("s", "Scored", "False")
    kube.configure(scorer, adjustments=[entry("out", set=-100)])
    kube.wait_items("s", {"s": -100})
    assert kube.condition("s", "Adjusted")[2] == '"out" sets -100'
    kube.configure(scorer)
    kube.wait_items("s", {"s": 40})
    assert kube.condition("s", "Adjusted") is None and kube.object("s")["status"]["validUntil"] == until


def test_an_invalid_list_changes_nothing(kube, fake, start_agent):
    scorer = summary("s", fake.on("/s", results({}, 40)), interval=600)
    kube.configure(scorer, adjustments=[entry("slow", add=-30)])
    agent = start_agent({}, *kube.flags())
    kube.wait_items("s", {"s": 10})
    kube.configure(scorer, adjustments=[entry("slow", add=-30), entry("both", add=1, set=1)])
    agent.wait_log("adjustments[1]: expected exactly one of add and set")
    assert kube.items("s") == {"s": 10}
    wait_until(lambda: "adjustments" in kube.report().get("features", []), "the report says that it knows them")
    assert kube.object("s", CLUSTER)["status"]["scores"] == [{"name": "s", "value": 10}]
