"""A scorer may have several sources: each is queried with its own settings, their series are concatenated in order, and
the error names the one that fails."""

import pytest

from lib.agent import summary
from lib.fake import answer, plain, results, series
from lib.kube import NAMESPACE

QUERY_RANGE = "/api/v1/query_range"


def source(fake, query, secret=None, **more):
    auth = {"sourceEndpointAuthName": secret, "sourceEndpointAuthKey": "token"} if secret else {}
    return {"sourceEndpoint": fake.url, "sourceQuery": query, **auth, **more}


@pytest.fixture(name="secrets")
def secrets_folder(tmp_path):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text(f"of-{name}")
    return f"--secrets.dir={tmp_path}"


def scorer(fake, *sources, **more):
    """The first fake is also the scoring API."""
    return {
        "scoreName": "s",
        "scoringEndpoint": fake.on("/scoring", results({}, 1)),
        "scoringInterval": 1,
        "sources": list(sources),
        **more,
    }


def posted(fake):
    return [s["metric"]["n"] for s in fake.requests("/scoring")[-1].json["data"]]


def test_each_in_its_own_way(fake, other_fake, start_agent, secrets):
    fake.on(QUERY_RANGE, series({"n": "1"}), series({"n": "2"}, {"n": "3"}), series({"n": "6"}))
    other_fake.on(QUERY_RANGE, series({"n": "4"}), series({"n": "5"}))
    first = source(fake, "a;b", "first")
    second = source(other_fake, "c;d", "second", sourceRange=600, sourceStep=15)
    third = source(fake, "e")
    agent = start_agent({"summaries": [scorer(fake, first, second, third, scoringInterval=600)]}, secrets)
    assert agent.wait_rounds("s")["error"] is None
    assert posted(fake) == ["1", "2", "3", "4", "5", "6"]
    asked, others = fake.requests(QUERY_RANGE), other_fake.requests(QUERY_RANGE)
    assert [(r.arguments["query"], r.token) for r in asked] == [
        ("a", "Bearer of-first"),
        ("b", "Bearer of-first"),
        ("e", None),
    ]
    assert [(r.arguments["query"], r.token) for r in others] == [("c", "Bearer of-second"), ("d", "Bearer of-second")]
    assert len({r.arguments["end"] for r in [*asked, *others]}) == 1
    for r, seconds, step in [(asked[0], 3600, "60"), (others[0], 600, "15")]:
        assert float(r.arguments["end"]) - float(r.arguments["start"]) == pytest.approx(seconds)
        assert r.arguments["step"] == step
    status = agent.status("s")
    assert [s["query"] for s in status["sources"]] == ["a;b", "c;d", "e"]
    assert status["source"] == status["sources"][0]


def test_as_the_hub_writes_it(fake, other_fake, start_agent):
    """The summary's own fields repeat the first source for agents that do not know the list: it is queried once."""
    fake.on(QUERY_RANGE, series({"n": "1"}))
    other_fake.on(QUERY_RANGE, series({"n": "2"}))
    written = {"sourceType": "Prometheus", "sourceEndpointAuthName": "", "sourceEndpointAuthKey": ""}
    first, second = source(fake, "a", **written), source(other_fake, "b", **written)
    agent = start_agent([scorer(fake, first, second, **first)], "--cluster-name=c1")
    agent.wait_rounds("s")
    assert posted(fake) == ["1", "2"]


def test_the_one_that_fails_is_named(fake, other_fake, start_agent):
    fake.on(QUERY_RANGE, series({"n": "1"}))
    refused = {"status": "error", "errorType": "bad_data", "error": "no such function"}
    other_fake.on(QUERY_RANGE, answer(refused, 400))
    agent = start_agent({"summaries": [scorer(fake, source(fake, "a"), source(other_fake, "b"), source(fake, "c"))]})
    error = agent.wait_rounds("s")["error"]
    assert (error["stage"], error["class"]) == ("source", "query")
    assert error["text"] == "source 2 of 3: bad_data: no such function"
    assert error["url"] == f"{other_fake.url}{QUERY_RANGE}"
    assert not fake.requests("/scoring")
    assert f'url={other_fake.url}{QUERY_RANGE} err="source 2 of 3' in agent.log()
    other_fake.on(QUERY_RANGE, plain("busy", 503))
    agent.wait_until(lambda: agent.status("s")["error"]["class"] == "http_5xx", "the other failure is told")
    other_fake.on(QUERY_RANGE, series({"n": "2"}))
    assert agent.wait_scores("s") == [({}, 1)]
    assert posted(fake) == ["1", "2", "1"]


def test_a_removed_source_is_asked_no_more(fake, other_fake, start_agent, secrets):
    fake.on(QUERY_RANGE, series({"n": "1"}))
    other_fake.on(QUERY_RANGE, series({"n": "2"}))
    first, second = source(fake, "a", "first"), source(other_fake, "b", "second")
    agent = start_agent({"summaries": [scorer(fake, first, second, scoringInterval=600)]}, secrets)
    agent.wait_rounds("s")
    assert posted(fake) == ["1", "2"]
    agent.apply({"summaries": [scorer(fake, second, scoringInterval=600)]})
    agent.wait_until(lambda: len(fake.requests("/scoring")) == 2, "the changed scorer's round")
    assert posted(fake) == ["2"]
    agent.apply({"summaries": [scorer(fake, {"sourceType": "None"}, scoringInterval=600)]})
    agent.wait_until(lambda: len(fake.requests("/scoring")) == 3, "the round without a source")
    assert posted(fake) == []
    assert len(fake.requests(QUERY_RANGE)) == 1 and len(other_fake.requests(QUERY_RANGE)) == 2
    assert {r.token for r in other_fake.requests(QUERY_RANGE)} == {"Bearer of-second"}


def test_a_bad_entry_is_told_with_its_place(fake, start_agent):
    good = summary("good", fake.on("/s", results({}, 1)))
    agent = start_agent({"summaries": [good]})
    agent.write({"summaries": [scorer(fake, source(fake, "up"), {"sourceEndpoint": fake.url})]})
    answered = agent.reload()
    assert answered.status != 200
    assert "summaries[0].sources[1].sourceQuery: missing, expected a PromQL query" in answered.text
    assert agent.wait_scores("good") == [({}, 1)]


def test_the_secrets_of_all_are_watched(kube, fake, other_fake, start_agent):
    """On Kubernetes, a token that is created later takes effect immediately, whichever source names it."""
    fake.on(QUERY_RANGE, series({"n": "1"}))
    other_fake.on(QUERY_RANGE, series({"n": "2"}))
    kube.secret("first", token="one")
    one = scorer(fake, source(fake, "a", "first"), source(other_fake, "b", "second"), scoringInterval=300)
    kube.configure(one)
    agent = start_agent({}, *kube.flags())
    words = f'secret "{NAMESPACE}/second", key "token": Secret not found'
    agent.wait_until(lambda: words in agent.status("s")["error"]["text"], "the first round has failed")
    kube.secret("second", token="two")
    kube.wait_items("s", {"s": 1})
    assert posted(fake) == ["1", "2"]
    assert {r.token for r in other_fake.requests(QUERY_RANGE)} == {"Bearer two"}
