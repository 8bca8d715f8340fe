"""The reference parser, which rejects everything that the specification forbids, accepts the OpenMetrics page."""

import pytest

from lib.agent import labels, summary
from lib.exposition import Samples
from lib.fake import plain, results

parser = pytest.importorskip("prometheus_client.openmetrics.parser", reason="needs python3-prometheus-client")
ACCEPT = "application/openmetrics-text; version=1.0.0, text/plain; q=0.5"


def test_it_would_refuse():
    with pytest.raises(ValueError):
        list(parser.text_string_to_metric_families("# TYPE a counter\na 1\n# EOF\n"))


def test_it_parses(prometheus, fake, start_agent):
    hostile = {"node": 'a"\\\n', "pod": "é🎈", "app": "# EOF", "meta": ""}
    good = summary(
        "a \\ name",
        fake.on("/s", results(hostile, 1e300, {}, float("nan"))),
        source=prometheus.url,
        query="vector(1)",
    )
    bad = summary("bad", fake.on("/bad", plain("no", 500)))
    agent = start_agent({"summaries": [good, bad]})
    agent.wait_all()
    agent.wait_metric("dynamic_scoring_rounds_total", score_name="bad", result="failure")
    answer = agent.get("/metrics", Accept=ACCEPT)
    assert answer.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert answer.text.endswith("\n# EOF\n") and "\n\n" not in answer.text
    families = {f.name: f for f in parser.text_string_to_metric_families(answer.text)}
    scores = {tuple(sorted(s.labels.items())): s.value for s in families["dynamic_score"].samples}
    expected = labels(cluster="c1", score_name="a \\ name", **hostile)
    assert scores[tuple(sorted(expected.items()))] == 1e300
    assert all(s.timestamp is None for s in families["dynamic_score"].samples)
    assert families["dynamic_scoring_fetch_duration_seconds"].type == "histogram"

    # The same families and samples as in the text format, but for what counts while it is looked at.
    def counted(name):
        return name.startswith(("process_", "dynamic_scoring_http_"))

    here = {(s.name, tuple(sorted(s.labels.items()))) for f in families.values() for s in f.samples}
    there = {(name, tuple(sorted(have.items()))) for name, have, _ in agent.metrics().list}
    assert {x for x in here if not counted(x[0])} == {x for x in there if not counted(x[0])}
    assert {f.documentation for f in families.values()} <= set(Samples(agent.get("/metrics").text).helps.values())
    for family in families.values():
        assert family.documentation and family.type in ("counter", "gauge", "histogram"), family.name
