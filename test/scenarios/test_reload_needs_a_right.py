"""POST /-/reload needs --web.enable-lifecycle, refuses pages of other sites, and reloads at most once a second."""

import signal
from concurrent.futures import ThreadPoolExecutor

from lib.agent import PROGRAM
from lib.client import call

RELOADS = "dynamic_scoring_config_reloads_total"


def test_without_the_flag(start_agent):
    agent = start_agent({"summaries": []}, start=False)
    agent.command = [PROGRAM, "agent", f"--config.file={agent.file}", f"--web.listen-address={agent.url[7:]}"]
    agent.start()
    answer = agent.reload()
    assert (answer.status, answer.text[:29]) == (403, "Lifecycle API is not enabled:")
    assert agent.metric(RELOADS, result="success") == 1
    agent.process.send(signal.SIGHUP)
    agent.wait_metric_is(2, RELOADS, result="success")


def test_from_another_site(start_agent):
    agent = start_agent({"summaries": []})
    url = agent.url + "/-/reload"
    for fields in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
    ):
        assert (fields, call("POST", url, **fields).status) == (fields, 403)
    assert call("POST", url, Host="evil.example").status == 421
    assert agent.metric(RELOADS, result="success") == 1
    assert call("POST", url, Origin=agent.url, Sec_Fetch_Site="same-origin").status == 200


def test_many_at_once(start_agent):
    agent = start_agent({"summaries": []})
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: agent.reload(), range(16)))
    assert {a.status for a in answers} == {200} and {a.text for a in answers} == {"configuration applied\n"}
    agent.wait_metric(RELOADS, 3, result="success")
    assert agent.metric(RELOADS, result="success") < 10  # a few seconds on a machine that is busy
