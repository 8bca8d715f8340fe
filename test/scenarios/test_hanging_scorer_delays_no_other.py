"""One hanging scorer among twenty, and one with a hanging source, do not delay the others."""

from lib.agent import summary
from lib.fake import hanging, results, series


def test_twenty(fake, start_agent):
    hangs = summary("hangs", fake.on("/hangs", hanging), timeout="5m")
    fake.on("/api/v1/query_range", hanging)
    source_hangs = summary("source_hangs", fake.on("/never", results({}, 1)), source=fake.url, timeout="5m")
    paths = [f"/s{i}" for i in range(18)]
    others = [summary(p[1:], fake.on(p, results({}, 1))) for p in paths]
    agent = start_agent({"summaries": [hangs, *others, source_hangs]})
    agent.wait_until(lambda: all(len(fake.requests(p)) >= 4 for p in paths), "the others have had four rounds")
    # All that in the first round of those that hang.
    assert agent.status("hangs")["running"] and agent.status("source_hangs")["running"]
    assert len(fake.requests("/hangs")) == 1 and not fake.requests("/never")


def test_many_that_hang(fake, start_agent):
    """More than the number of curl's cached connections: the one good scorer still has its rounds, and the pages
    respond."""
    fake.on("/hangs", hanging)
    bad = [summary(f"bad{i}", fake.url + "/hangs", timeout="5m" if i % 2 else "2s") for i in range(100)]
    good = summary("good", fake.on("/good", results({}, 1)))
    fake.on("/api/v1/query_range", series({}))
    agent = start_agent({"summaries": [*bad, good]})
    agent.wait_rounds("good", 4)
    assert agent.status("bad1")["running"] and agent.get("/-/healthy").status == 200
    agent.wait_until(lambda: len(fake.requests("/hangs")) > 100, "those that hang are tried again")
