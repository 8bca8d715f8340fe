"""Each failure leads to the right alert, and to no other, with a text that names the cause and a command that shows it in
full. Once the failure is mended, the alert is resolved. Five failures at once: none hides another or looks like one."""

import dataclasses
import time
from collections.abc import Callable

import pytest
from lib.fake import plain
from lib.monitoring import QUERY, kubectl_shell, running_world
from lib.rules import alerts, first_command, seconds
from lib.wait import LONG, eventually

ESCALATIONS = ("ScorerFailsOnClusters", "ScoresExpired")  # for the same cause, once it has lasted


@dataclasses.dataclass
class Failure:
    labels: dict  # of the alert
    text: str  # in its description
    shown: str  # by the description's first command; None: it needs a kubelet
    mend: Callable
    began: float = dataclasses.field(default_factory=time.monotonic)
    lasted: float = None


@pytest.fixture(scope="module", name="world")
def monitored(api_server, prometheus, tmp_path_factory):
    with running_world(tmp_path_factory.mktemp("world"), api_server, prometheus.url) as world:
        world.wait_quiet()
        yield world


def agent_dies(world):
    agent = world.agents["c2"]
    agent.process.kill()
    labels = {"alertname": "AgentDown", "ds_cluster": "c2", "severity": "critical"}
    return Failure(labels, "agent of cluster c2 has sent no metrics", None, agent.start)


def tsdb_stops(world):
    world.tsdb.stop()
    labels = {"alertname": "RemoteWriteBehind", "cluster": "c1", "remote_name": "hub"}
    return Failure(labels, f"to hub ({world.tsdb.url()}) on cluster c1", "connection refused", world.tsdb.start)


def scoring_api_dies(world):
    world.scorer.kill()
    labels = {"alertname": "ScorerFailing", "cluster": "c1", "score_name": "killed"}
    text = "rounds in a row: connect at stage scoring"
    return Failure(labels, text, "connection refused", world.start_scorer)


def query_breaks(world):
    world.apply_scorer("broken", "sum(rate(")
    labels = {"alertname": "ScorerFailing", "cluster": "c1", "score_name": "broken"}
    text, words = "rounds in a row: query at stage source", "parse error: unclosed left parenthesis"
    return Failure(labels, text, words, lambda: world.apply_scorer("broken", QUERY))


def scoring_api_becomes_unhealthy(world):
    world.unhealthy.on("/healthz", plain("overloaded", 503))
    labels = {"alertname": "ScoringAPIUnhealthy", "scorer": "unhealthy", "severity": "critical"}
    text, words = "is unhealthy (HTTPStatus, ", "HTTP 503 Service Unavailable: overloaded"
    return Failure(labels, text, words, lambda: world.unhealthy.on("/healthz", plain("ok")))


def find(alertmanager, failure, status):
    """The one alert with this failure's labels."""
    found = [a for a in alertmanager.received().values() if failure.labels.items() <= a["labels"].items()]
    assert len(found) == 1 and found[0]["status"] == status, found
    return found[0]


def check_text(shell, failure, alert):
    text = alert["annotations"]["description"]
    assert failure.text in text and "<no value>" not in text and "%!" not in text, text
    assert alert["annotations"]["runbook_url"].endswith(f"/{alert['labels']['alertname']}.md")
    if failure.shown:
        command = first_command(text)
        eventually(lambda: shown_by(shell, command, failure.shown))


def shown_by(shell, command, words):
    assert words in shell.run(command), command


def is_escalation(alert, failures):
    """Whether a failure lasted so long that this one is due, too."""
    name = alert["labels"]["alertname"]
    return name in ESCALATIONS and max(f.lasted for f in failures) > seconds(alerts()[name]["for"])


def test_alerts(world, tmp_path):
    shell = kubectl_shell(world, tmp_path)
    steps = (agent_dies, tsdb_stops, scoring_api_dies, query_breaks, scoring_api_becomes_unhealthy)
    failures = [step(world) for step in steps]
    for failure in reversed(failures):  # the fast ones first
        alert = eventually(lambda f=failure: find(world.alertmanager, f, "firing"), LONG)
        check_text(shell, failure, alert)
        failure.mend()
        failure.lasted = time.monotonic() - failure.began
    for failure in failures:
        eventually(lambda f=failure: find(world.alertmanager, f, "resolved"), LONG)
    world.wait_quiet()
    for alert in world.alertmanager.received().values():
        expected = any(f.labels.items() <= alert["labels"].items() for f in failures)
        assert expected or is_escalation(alert, failures), alert
