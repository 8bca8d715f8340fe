"""An agent that sends its own metrics to VictoriaMetrics needs no Prometheus: vmalert evaluates the rules there, names the cause and
withdraws the alert."""

import shutil
import subprocess

import pytest
import yaml

from lib.agent import summary
from lib.client import call
from lib.fake import plain, results
from lib.process import ROOT, Process, free_port, missing
from lib.tsdb import Tsdb
from lib.wait import LONG, wait_until


@pytest.fixture(name="tsdb")
def victoria_metrics(tmp_path):
    hub = Tsdb("victoria-metrics", tmp_path)
    hub.command.append("-search.latencyOffset=1ms")  # otherwise it hides the last 30 s
    with hub:
        yield hub


def rules_without_delay(folder):
    """`for` is the only thing that is changed."""
    groups = yaml.safe_load((ROOT / "alerts" / "agent.yaml").read_text())["groups"]
    for rule in (r for g in groups for r in g["rules"]):
        rule["for"] = "0s"
    path = folder / "rules.yaml"
    path.write_text(yaml.safe_dump({"groups": groups}))
    return path


@pytest.fixture(name="alerts")
def vmalert(tsdb, other_fake, tmp_path):
    """alerts(name): those of this name that fire."""
    if not shutil.which("vmalert"):
        missing("no vmalert here")
    other_fake.on("/api/v2/alerts", plain(""))
    url = f"http://127.0.0.1:{free_port()}"
    flags = {"rule": rules_without_delay(tmp_path), "datasource.url": tsdb.url(""), "notifier.url": other_fake.url}
    flags |= {"httpListenAddr": url.removeprefix("http://"), "evaluationInterval": "1s"}
    # Newer ones look 30 s back, by default.
    if "-rule.evalDelay" in subprocess.run(["vmalert", "-help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout:
        flags["rule.evalDelay"] = "0s"
    process = Process("vmalert", ["vmalert", *(f"-{k}={v}" for k, v in flags.items())], tmp_path / "vmalert.log")

    def firing(name):
        process.check_alive()
        found = call("GET", f"{url}/api/v1/alerts").json["data"]["alerts"] or []
        return [a for a in found if a["name"] == name and a["state"] == "firing"]

    yield firing
    process.kill()


def test_a_scorer_that_fails(tsdb, alerts, fake, start_agent):
    scorer = summary("cpu", fake.on("/cpu", plain("overloaded", 503)), interval=1)
    endpoint = {"name": "hub", "url": tsdb.url("/api/v1/write"), "send_health_metrics": True}
    endpoint["external_labels"] = {"cluster": "c1"}
    agent = start_agent({"summaries": [scorer], "remoteWrite": [endpoint]})
    [alert] = wait_until(lambda: alerts("ScorerFailing"), "it fires", LONG)
    assert alert["labels"].items() >= {"cluster": "c1", "score_name": "cpu", "stage": "scoring", "class": "http_5xx"}.items()
    text = alert["annotations"]["description"]
    assert text.startswith("Scorer cpu on cluster c1 has failed") and "rounds in a row: http_5xx at stage scoring." in text
    fake.on("/cpu", results({"node": "n1"}, 1))
    agent.wait_scores("cpu")
    wait_until(lambda: not alerts("ScorerFailing"), "it is withdrawn", LONG)
