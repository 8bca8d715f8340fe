"""A scrape shows the scores and the program's own metrics of one moment."""

from lib.agent import summary
from lib.fake import results

SCORERS = [f"s{i}" for i in range(8)]


def test_each_score_is_that_of_the_round_counted(fake, start_agent):
    """The nth answer of each scoring API is n, so that a score says how many rounds have succeeded."""
    for name in SCORERS:
        fake.on(f"/{name}", *[results({}, n) for n in range(1, 100)])
    agent = start_agent({"summaries": [summary(name, f"{fake.url}/{name}") for name in SCORERS]})

    def consistent():
        page = agent.metrics()
        for name in SCORERS:
            score = page.value("dynamic_score", ds_score_name=name)
            assert score == page.value("dynamic_scoring_requests_total", score_name=name, status="success")
            assert (page.value("dynamic_scoring_series", score_name=name) or 0) == (score is not None)
        return True

    agent.holds_until(consistent, lambda: agent.status("s0")["rounds"] >= 4, "there were four rounds")
