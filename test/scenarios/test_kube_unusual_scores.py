"""Scores that the API server would reject, or that are not numbers, do not affect the others."""

from lib.agent import summary
from lib.fake import plain, results
from lib.kube import CLUSTER, seconds_until
from lib.wait import LONG, wait_until


def test_out_of_range_is_clamped_and_said(kube, fake, start_agent):
    url = fake.on("/s", results({"node": "a"}, 1000, {"node": "b"}, -100.5, {"node": "c"}, 7.9))
    kube.configure(summary("s", url, interval=600, scoreDimensionFormat="${node}"))
    agent = start_agent({}, *kube.flags())
    kube.wait_items("s", {"a": 100, "b": -100, "c": 7})
    assert kube.wait_condition("s", "Clamped", "True")[1:] == (
        "OutOfRange",
        "2 of 3 values clamped to -100..100; set scoreRange to scale instead",
    )
    agent.wait_metric("dynamic_scoring_placement_clamped_total", 2, score_name="s")
    agent.wait_metric("dynamic_scoring_placement_items", 3, score_name="s")


def test_a_range_scales(kube, fake, start_agent):
    url = fake.on("/s", results({"node": "a"}, 0, {"node": "b"}, 0.5, {"node": "c"}, 1))
    kube.configure(
        summary("s", url, interval=600, scoreDimensionFormat="${node}", scoreRange={"min": 0, "max": 1})
    )
    start_agent({}, *kube.flags())
    kube.wait_items("s", {"a": -100, "b": 0, "c": 100})


def test_of_duplicates_the_last_of_the_answer_wins(kube, fake, start_agent):
    url = fake.on("/s", results({"node": "z"}, 1, {"node": "a"}, 2, {"node": "m"}, 3, {"node": "b"}, 4))
    kube.configure(
        summary("last", url, interval=600),
        summary("avg", url, interval=600, scoreAggregation="avg"),
        summary("sum", url, interval=600, scoreAggregation="sum"),
    )
    start_agent({}, *kube.flags())
    kube.wait_items("last", {"last": 4})
    kube.wait_items("avg", {"avg": 2})
    kube.wait_items("sum", {"sum": 10})


def test_nan_and_infinity_are_left_out(kube, fake, start_agent):
    body = '{"results":[{"metric":{"node":"a"},"score":NaN},{"metric":{"node":"b"},"score":5},'
    body += '{"metric":{"node":"c"},"score":"+Inf"},{"metric":{},"score":6}]}'
    kube.configure(summary("s", fake.on("/s", plain(body)), interval=600, scoreDimensionFormat="${node}"))
    agent = start_agent({}, *kube.flags())
    kube.wait_items("s", {"b": 5})
    assert kube.condition("s", "Scored")[2] == (
        "1 item; skipped 2 NaN or infinite, 1 with an empty name"
    )
    agent.wait_metric("dynamic_scoring_placement_left_out_total", 2, reason="not_finite", score_name="s")


def test_values_that_become_zero_are_told(kube, fake, start_agent):
    """With a range that would keep them. 0 itself is no loss, and with a scoreRange nothing is lost."""
    pairs = {"node": "a"}, 0.05, {"node": "b"}, 0.8, {"node": "c"}, 2, {"node": "d"}, 0
    whole = results({"node": "a"}, 5, {"node": "b"}, 0.8)
    kube.configure(
        summary("lost", fake.on("/lost", results(*pairs)), interval=600, scoreDimensionFormat="${node}"),
        summary("kept", fake.on("/kept", whole), interval=600, scoreDimensionFormat="${node}"),
        summary("scaled", fake.on("/scaled", results(*pairs)), interval=600, scoreDimensionFormat="${node}", scoreRange={"min": 0, "max": 1}),
    )
    start_agent({}, *kube.flags())
    kube.wait_items("lost", {"a": 0, "b": 0, "c": 2, "d": 0})
    kube.wait_items("kept", {"a": 5, "b": 0})
    kube.wait_items("scaled", {"a": -90, "b": 60, "c": 100, "d": -100})
    words = "2 of 3 values other than 0 become 0, as Placement takes whole numbers; set scoreRange, such as {min: 0, max: 10}, to tell them apart"
    assert kube.condition("lost", "Rounded") == ("True", "ValuesBecomeZero", words)
    for name in ("kept", "scaled"):
        assert kube.condition(name, "Rounded")[0] == "False"


def test_a_format_that_loses_results_is_told(kube, fake, start_agent):
    url = fake.on("/s", results({"node": "a"}, 1, {"node": "b"}, 2, {"node": "c"}, 3))
    kube.configure(
        summary("typo", url, interval=600, scoreDimensionFormat="${nod};${cluster}"),
        summary("avg", url, interval=600, scoreAggregation="avg"),
    )
    agent = start_agent({}, *kube.flags())
    kube.wait_items("typo", {f"${{nod}};{CLUSTER}": 3})
    assert kube.condition("typo", "Scored")[2] == '1 item from 3 results; unknown placeholder "${nod}"'
    kube.wait_items("avg", {"avg": 2})
    assert kube.condition("avg", "Scored")[2] == "1 item"
    assert r'unknown placeholder \"${nod}\" stays as it is; known are ${cluster}, ${node}, ${device}' in agent.log()


def test_names_of_any_kind(kube, fake, start_agent):
    names = ['a"b\\c', "d\ne", "é温度", "<&>", "${node}", " ", "x" * 256]
    pairs = [p for i, name in enumerate(names) for p in ({"node": name}, i)]
    kube.configure(
        summary("s", fake.on("/s", results(*pairs)), interval=600, scoreDimensionFormat="${cluster}:${node}")
    )
    start_agent({}, *kube.flags())
    kube.wait_items("s", {f"{CLUSTER}:{name}": i for i, name in enumerate(names)})


def many(n, name):
    return results(*(p for i in range(n) for p in ({"node": name.format(i)}, i % 100)))


def test_20000_items(kube, fake, start_agent):
    url = fake.on("/s", many(20000, "node-{:05d}.of-a-pool.region.example.org"))
    kube.configure(summary("s", url, interval=600, scoreDimensionFormat="${node}"))
    start_agent({}, *kube.flags())
    kube.wait_condition("s", "Scored", "True", LONG)
    items = kube.items("s")
    assert len(items) == 20000
    assert all(items[f"node-{i:05d}.of-a-pool.region.example.org"] == i % 100 for i in range(20000))
    assert kube.condition("s", "Truncated")[0] == "False"


def test_too_many_for_the_store_are_truncated_before_the_write(kube, fake, start_agent):
    """The store counts < as six bytes."""
    url = fake.on("/s", many(40000, "node-{:05d}<<<<<<<<<<<<"))
    kube.configure(summary("s", url, interval=600, scoreDimensionFormat="${node}"))
    agent = start_agent({}, *kube.flags())
    status, reason, message = kube.wait_condition("s", "Truncated", "True", LONG)
    items = kube.items("s")
    assert reason == "TooManyItems"
    assert message.startswith(f"{40000 - len(items)} of 40000 items omitted")
    assert len(items) > 10000
    writes = agent.metrics().all("dynamic_scoring_placement_writes_total")
    assert {labels["result"] for labels, _ in writes} - {"retry", "conflict"} == {"ok"}  # a slow API server may need two, and have taken the first


def test_validity_ends_with_the_series(kube, fake, start_agent):
    """Of staleAfterIntervals intervals, also after the setting has changed."""
    kube.configure(summary("s", fake.on("/s", results({}, 1)), interval=600))
    agent = start_agent({"limits": {"staleAfterIntervals": 2}}, *kube.flags())
    kube.wait_items("s", {"s": 1})
    assert 1100 < seconds_until(kube.object("s")["status"]["validUntil"]) <= 1200

    kube.configure(summary("s", fake.on("/s", results({}, 1)), interval=2))
    wait_until(lambda: seconds_until(kube.object("s")["status"]["validUntil"]) <= 4, "the validity has become short")
    fake.on("/s", plain("out of order", 500))
    kube.wait_condition("s", "Scored", "False")
    until = kube.object("s")["status"]["validUntil"]
    agent.wait_until(lambda: not agent.scores("s"), "the series have ended")
    assert seconds_until(until) <= 0, until


def test_empty_results_fall_back_once_the_scores_expire(kube, fake, start_agent):
    url = fake.on("/s", results({"node": "a"}, 7, {"node": "b"}, 8))
    kube.configure(summary("s", url, scoreDimensionFormat="${node}", fallbackScore=-50))
    agent = start_agent({}, *kube.flags())
    kube.wait_items("s", {"a": 7, "b": 8})
    fake.on("/s", results())
    assert kube.wait_condition("s", "Scored", "False")[1:] == (
        "NoResults",
        "the scoring API returned no results; the last scores stay until validUntil",
    )
    assert kube.items("s") == {"a": 7, "b": 8}
    assert agent.scores("s") == []
    kube.wait_items("s", {"a": -50, "b": -50})
    assert "fallbackScore is used" in kube.condition("s", "Scored")[2]
    fake.on("/s", results({"node": "a"}, 9))
    kube.wait_items("s", {"a": 9})


def test_an_empty_source_is_told_from_a_failed_one(kube, fake, start_agent, prometheus):
    """And without labels of results in the format, there is a fallback even before the first score."""
    empty, gone = fake.on("/empty", results()), fake.on("/gone", plain("out of order", 500))
    common = {"sourceType": "Prometheus", "sourceQuery": 'up{job="none"}', "fallbackScore": -50}
    kube.configure(
        summary("empty", empty, interval=600, sourceEndpoint=prometheus.url, **common),
        summary("failed", empty, interval=600, sourceEndpoint=gone, **common),
    )
    start_agent({}, *kube.flags())
    kube.wait_items("empty", {"empty": -50})
    kube.wait_items("failed", {"failed": -50})
    assert kube.condition("empty", "Scored")[1:] == (
        "SourceEmpty",
        "the source returned no series; fallbackScore is used",
    )
    assert kube.condition("failed", "Scored")[1] == "SourceFailed"


def test_results_merged_by_truncated_labels_are_told(kube, fake, start_agent):
    """Two results become one series, and two series one item: names differ only beyond 256 bytes."""
    long = "n" * 256
    one = fake.on("/one", results({"node": f"{long}a"}, 1, {"node": f"{long}b"}, 2, {"node": "c"}, 3))
    two = fake.on("/two", results({"node": f"{long}a", "pod": "p"}, 1, {"node": f"{long}b", "pod": "q"}, 2))
    kube.configure(
        summary("series", one, interval=600, scoreDimensionFormat="${node}"),
        summary("item", two, interval=600, scoreDimensionFormat="${node}"),
        summary("neither", two, interval=600, scoreDimensionFormat="${node}/${pod}"),
    )
    agent = start_agent({}, *kube.flags())
    kube.wait_items("series", {long: 2, "c": 3})
    kube.wait_items("item", {long: 2})
    kube.wait_items("neither", {f"{long}/p": 1, f"{long}/q": 2})
    told = "1 result merged with others whose labels differ only beyond limits.labelValueBytes"
    for name, condition, by in (
        ("series", ("True", "LabelsTruncated", told), {"series": 1, "item": 0}),
        ("item", ("True", "LabelsTruncated", told), {"series": 0, "item": 1}),
        ("neither", ("False", "Complete", "all items are written"), {"series": 0, "item": 0}),
    ):
        assert kube.condition(name, "Truncated") == condition
        for level, count in by.items():
            agent.wait_metric_is(count, "dynamic_scoring_merged_by_truncation_total", level=level, score_name=name)
