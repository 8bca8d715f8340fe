"""A scoring API that serves many clusters can tell them apart: ${cluster} in the path of its endpoint and in the values of
its parameters is the name of the agent's cluster, whatever it contains."""

import json

from lib.agent import PROGRAM, summary
from lib.fake import answer, plain, results
from lib.process import run
from lib.scorers import api_config, full, scoring
from lib.wait import LONG, wait_until

ODD = "a/../b ?&#=%é"
ENCODED = "a%2F..%2Fb%20%3F%26%23%3D%25%C3%A9"


def targets(fake):
    return [r.path for r in fake.requests() if r.method == "POST"]


def test_of_an_agent(fake, start_agent):
    for name, wanted in (("west", "west"), (ODD, ENCODED)):
        fake.on(f"/for/{wanted}/scoring", results({}, 1))
        scorer = summary("s", f"{fake.url}/for/${{cluster}}/scoring?of=${{cluster}}&q=${{node}}", interval=600)
        agent = start_agent({"summaries": [scorer]}, f"--cluster-name={name}")
        assert agent.wait_rounds("s")["error"] is None
        assert targets(fake)[-1] == f"/for/{wanted}/scoring?of={wanted}&q=${{node}}"
        agent.wait_log('unknown placeholder \\"${node}\\" is sent as it is')


def test_a_name_cannot_lead_to_another_path(fake, start_agent):
    scorer = summary("s", fake.url + "/private/${cluster}/scoring", interval=600)
    agent = start_agent({"summaries": [scorer]}, "--cluster-name=..")
    error = agent.wait_rounds("s")["error"]
    assert (error["stage"], error["class"]) == ("scoring", "url")
    assert "the name of this cluster cannot be put for ${cluster}" in error["text"]
    assert targets(fake) == []


def test_it_passes_through_the_hub(hub, fake, start_controller):
    """From /config and from the DynamicScorer alike; other placeholders are a warning."""
    fake.on("/healthz", plain("ok"))
    about = scoring("cpu", path="/for/${cluster}", params={"name": "cpu", "as": "${cluster} & ${node}"})
    url = fake.on("/config", answer(api_config("cpu", source={"type": "None"}, scoring=about)))
    hub.add_cluster("c1")
    hub.configure()
    hub.apply_scorer("s", full(url))
    start_controller()
    words = hub.wait_scorer("s", "Valid", "True", "UnknownPlaceholder", LONG)[2]
    assert "scoring: unknown placeholder \"${node}\" is sent as it is; known is ${cluster}" in words

    def endpoint():
        return next((s["scoringEndpoint"] for s in hub.summaries("c1") or []), None)

    wait_until(lambda: endpoint() == f"{fake.url}/for/${{cluster}}?as=${{cluster}}%20%26%20%24%7Bnode%7D", "agents get it")


def test_check_scorer_shows_the_request(fake):
    fake.on("/healthz", plain("ok"))
    about = scoring("cpu", path="/for/${cluster}", params={"name": "cpu", "as": "${cluster}"})
    fake.on("/config", answer(api_config("cpu", source={"type": "None"}, scoring=about)))
    fake.on("/for/a%20b", results({}, 1))
    check = run(PROGRAM, "check-scorer", "--cluster-name=a b", "--output=json", fake.url)
    assert json.loads(check.stdout)["scoringURL"] == f"{fake.url}/for/a%20b?as=***", check.stdout
    assert targets(fake)[0] == "/for/a%20b?as=a%20b"
    assert f"POST {fake.url}/for/a%20b?as=***" in run(PROGRAM, "check-scorer", "--cluster-name=a b", fake.url).stdout


def test_check_config_tells_that_a_name_is_needed(tmp_path):
    scorer = summary("s", "http://s/${cluster}")
    (tmp_path / "config").write_text(json.dumps({"summaries": [scorer]}))
    check = run(PROGRAM, "check-config", tmp_path / "config")
    assert check.returncode == 0, check.stderr
    assert "warning: scoringEndpoint of s contains ${cluster}: set clusterName" in check.stdout
