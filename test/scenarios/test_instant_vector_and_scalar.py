"""At the endpoint /api/v1/query, an instant vector and a scalar become series of one sample; other types are rejected
with an explanation."""

import pytest

from lib.agent import summary
from lib.fake import results


def instant(prometheus, fake, start_agent, query):
    scoring = fake.on("/scoring", results({}, 1))
    source = prometheus.url + "/api/v1/query"
    agent = start_agent({"summaries": [summary("s", scoring, source=source, query=query)]})
    return agent.wait_rounds("s"), fake.requests("/scoring")


@pytest.mark.parametrize(
    "query, metric, value",
    [
        ('label_replace(vector(2.5), "node", "a\\"b", "", "")', {"node": 'a"b'}, "2.5"),
        ("scalar(vector(3))", {}, "3"),
    ],
)
def test_one_sample(prometheus, fake, start_agent, query, metric, value):
    status, asked = instant(prometheus, fake, start_agent, query)
    assert (status["state"], status["lastRound"]["sourceSeries"]) == ("ok", 1)
    [found] = asked[0].json["data"]
    assert (found["metric"], [v for _, v in found["values"]]) == (metric, [value])
    assert set(found) == {"metric", "values"}


def test_a_string_cannot_be_scored(prometheus, fake, start_agent):
    status, asked = instant(prometheus, fake, start_agent, '"text"')
    assert (status["error"]["class"], asked) == ("shape", [])
    assert 'unsupported result type "string"' in status["error"]["text"]
