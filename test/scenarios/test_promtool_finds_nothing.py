"""`promtool check metrics` has no complaints about the page, whatever scorers put into it."""

import pytest

from lib.agent import summary
from lib.fake import answer, plain, results
from lib.process import run

HOSTILE = [
    "plain",
    "ünïcödé ☃ 🎈 \u202eright to left",
    '"\'`\\\\"',
    "\\n is no newline, this is:\n, and \r\t\x01\x7f",
    "x" * 300,
    "é" * 150,
    "\ufffd \ud800 \x00",
    "# EOF\n# HELP dynamic_score x\n",
    '"} 1\nup{a="',
    "",
]


def promtool(page):
    return run("promtool", "check", "metrics", input=page)


def test_it_would_find_something():
    assert promtool("# TYPE no_help counter\nno_help 1\n").returncode == 3


@pytest.mark.parametrize("name", ["score", 'a "name" \\ ☃\n'])
def test_promtool_finds_nothing(fake, start_agent, name):
    keys = ("node", "pod", "container", "device", "namespace", "app", "meta")
    rows = [{k: HOSTILE[(i + j) % len(HOSTILE)] for j, k in enumerate(keys)} for i in range(len(HOSTILE))]
    scores = [0, -0.0, 1e308, 5e-324, 1 / 3, float("nan"), float("inf"), float("-inf"), 2**53, -1]
    pairs = [x for pair in zip(rows, scores) for x in pair]
    summaries = [
        summary(name, fake.on("/hostile", results(*pairs))),
        summary("bytes", fake.on("/bytes", plain(b'{"results":[{"metric":{"pod":"\xff\xfe\xc3"},"score":1}]}'))),
        summary("none", fake.on("/none", answer({"results": []}))),
        summary("failing", fake.on("/failing", plain("no", 500)), source=fake.url, query="x{"),
    ]
    agent = start_agent({"summaries": summaries})
    agent.wait_all()
    page = agent.wait_until(
        lambda: (p := agent.get("/metrics").text).count("\ndynamic_score{") == 11 and p, "11 scores"
    )
    check = promtool(page)
    assert (check.returncode, check.stdout, check.stderr) == (0, "", "")
    assert agent.metric("dynamic_score", ds_score_name="bytes", ds_pod="\ufffd\ufffd\ufffd") == 1
