"""The same scores are the same text in the same order in every scrape, after every round, reload and restart:
Prometheus caches series by their raw text."""

import random

from lib.agent import summary
from lib.fake import answer


def test_whatever_the_order_of_the_answer(fake, start_agent):
    rows = [{"metric": {"pod": f"p{i}", "node": f"n{i % 7}", "meta": 'é"\\'}, "score": i / 3} for i in range(300)]

    def shuffled(connection, request):
        metrics = [dict(random.sample(list(r["metric"].items()), 3)) for r in rows]
        results = [{"metric": m, "score": r["score"]} for m, r in zip(metrics, rows)]
        answer({"results": random.sample(results, len(results))})(connection, request)

    one, two = summary("one", fake.on("/one", shuffled)), summary("two", fake.on("/two", shuffled))
    agent = start_agent({"summaries": [one, two]})

    def lines(accept="text/plain"):
        text = agent.get("/metrics", Accept=accept).text
        return [line for line in text.splitlines() if line.startswith("dynamic_score{")]

    agent.wait_scores("one"), agent.wait_scores("two")
    first = lines()
    assert len(first) == 600
    agent.wait_rounds("two", 3)
    assert lines() == lines("application/openmetrics-text; version=1.0.0") == first
    agent.apply({"summaries": [{**two, "timeout": "20s"}, one]})
    agent.wait_rounds("two", 5)
    assert lines() == first
    agent.process.end()
    agent.start()
    agent.wait_scores("one"), agent.wait_scores("two")
    assert lines() == first
