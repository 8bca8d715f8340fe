"""Queries separated by `;` run one after the other, and their series are concatenated in order."""

from lib.agent import summary
from lib.fake import results, series


def labelled(label, value):
    return f'label_replace(vector(1), "{label}", "{value}", "", "")'


def test_joined_in_order(prometheus, fake, start_agent):
    """A `;` in a string literal or a comment does not separate, and empty queries are skipped."""
    query = f'; {labelled("node", "a;b")} ;; \n{labelled("pod", "c")};  # not; here\n {labelled("app", "d")};'
    scoring = fake.on("/scoring", results({}, 1))
    agent = start_agent({"summaries": [summary("s", scoring, source=prometheus.url, query=query, sourceRange=60)]})
    assert agent.wait_rounds("s")["error"] is None
    data = fake.requests("/scoring")[0].json["data"]
    assert [s["metric"] for s in data] == [{"node": "a;b"}, {"pod": "c"}, {"app": "d"}]
    assert all(v == "1" for s in data for _, v in s["values"])


def test_one_of_them_fails(prometheus, fake, start_agent):
    scoring = fake.on("/scoring", results({}, 1))
    agent = start_agent(
        {"summaries": [summary("s", scoring, source=prometheus.url, query="vector(1);sum(;vector(2)")]}
    )
    error = agent.wait_rounds("s")["error"]
    assert (error["stage"], error["class"]) == ("source", "query")
    assert not fake.requests("/scoring")


def test_empty_parts_leave_no_comma(fake, start_agent):
    one, none = series({"n": "1"}), series()
    fake.on("/api/v1/query_range", none, one, none, one, none)
    scoring = fake.on("/scoring", results({}, 1))
    agent = start_agent({"summaries": [summary("s", scoring, source=fake.url, query="a;b;c;d;e", interval=60)]})
    agent.wait_rounds("s")
    assert [s["metric"] for s in fake.requests("/scoring")[0].json["data"]] == [{"n": "1"}, {"n": "1"}]
    asked = fake.requests("/api/v1/query_range")
    assert [r.arguments["query"] for r in asked] == ["a", "b", "c", "d", "e"]
    assert len({(r.arguments["start"], r.arguments["end"]) for r in asked}) == 1
