"""Bearer tokens are sent where they are configured: one to the source, another to the scoring API, each read before
every round."""

import pytest

from lib.agent import summary
from lib.fake import answer, plain, results, series

AUTH = {
    "sourceEndpointAuthName": "prom",
    "sourceEndpointAuthKey": "token",
    "scoringEndpointAuthName": "scorer",
    "scoringEndpointAuthKey": "key.txt",
}


@pytest.fixture(name="secrets")
def secrets_folder(tmp_path):
    def write(name, key, text):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / key).write_text(text)

    write.dir = f"--secrets.dir={tmp_path}"
    return write


def configured(fake, **more):
    fake.on("/api/v1/query_range", series({}))
    scoring = fake.on("/scoring", results({}, 1))
    return summary("s", scoring, source=fake.url, **more)


def last_tokens(fake):
    return [fake.requests(path)[-1].token for path in ("/api/v1/query_range", "/scoring")]


def test_sent_and_rotated(fake, start_agent, secrets):
    secrets("prom", "token", "for-prometheus\n")
    secrets("scorer", "key.txt", "  for-scorer ")
    agent = start_agent({"summaries": [configured(fake, **AUTH)]}, secrets.dir)
    agent.wait_scores("s")
    assert last_tokens(fake) == ["Bearer for-prometheus", "Bearer for-scorer"]
    secrets("scorer", "key.txt", "rotated")
    agent.wait_until(
        lambda: last_tokens(fake) == ["Bearer for-prometheus", "Bearer rotated"], "the next round has it"
    )


def test_a_removed_reference_sends_none(fake, start_agent, secrets):
    secrets("prom", "token", "for-prometheus")
    secrets("scorer", "key.txt", "for-scorer")
    agent = start_agent({"summaries": [configured(fake, **AUTH)]}, secrets.dir)
    agent.wait_scores("s")
    agent.apply({"summaries": [configured(fake)]})
    agent.wait_until(lambda: last_tokens(fake) == [None, None], "no token is sent")


@pytest.mark.parametrize("missing, stage", [("prom", "source"), ("scorer", "scoring")])
def test_a_late_secret_is_found(fake, start_agent, secrets, missing, stage):
    secrets("scorer" if missing == "prom" else "prom", "key.txt" if missing == "prom" else "token", "there")
    agent = start_agent({"summaries": [configured(fake, **AUTH)]}, secrets.dir)
    error = agent.wait_rounds("s")["error"]
    assert (error["stage"], error["class"]) == (stage, "secret")
    assert f'secret "{missing}", key' in error["text"] and "Secret not found" in error["text"]
    secrets(missing, "token" if missing == "prom" else "key.txt", "late")
    assert agent.wait_scores("s") == [({}, 1)]
    assert "Bearer late" in last_tokens(fake)
    # Nothing was asked without its token meanwhile.
    assert all(r.token for r in fake.requests())


def test_what_is_no_token_is_not_sent(fake, start_agent, secrets):
    secrets("prom", "token", "fine")
    secrets("scorer", "key.txt", "two\r\nX-Lines: 1")
    agent = start_agent({"summaries": [configured(fake, **AUTH)]}, secrets.dir)
    assert agent.wait_rounds("s")["error"]["class"] == "secret"
    assert not fake.requests("/scoring")
    assert "X-Lines" not in agent.log()


def test_refused(fake, start_agent, secrets):
    """401 is reported as such, and the scores come back when the token is fixed."""
    secrets("prom", "token", "fine")
    secrets("scorer", "key.txt", "wrong")
    config = configured(fake, **AUTH)
    good, bad = results({}, 1), plain('{"error": "who are you?"}', 401)
    fake.on("/scoring", lambda c, r: (good if r.token == "Bearer right" else bad)(c, r))
    agent = start_agent({"summaries": [config]}, secrets.dir)
    error = agent.wait_rounds("s")["error"]
    assert error["class"] == "http_4xx" and "401" in error["text"] and "who are you?" in error["text"]
    secrets("scorer", "key.txt", "right")
    assert agent.wait_scores("s") == [({}, 1)]


@pytest.mark.parametrize("status, words", [(401, "HTTP 401 Unauthorized"), (403, "HTTP 403 Forbidden")])
def test_a_refusal_names_what_was_sent(fake, start_agent, secrets, status, words):
    """Also in Prometheus' own form of an error; or the field that is not set."""
    secrets("prom", "token", "fine")
    config = configured(fake, **AUTH)
    other = summary("other", fake.on("/other", plain("who are you?", status)))
    fake.on("/api/v1/query_range", answer({"status": "error", "errorType": "auth", "error": "no such tenant"}, status))
    agent = start_agent({"summaries": [config, other]}, secrets.dir)
    error = agent.wait_rounds("s")["error"]
    assert error["text"] == f'{words} with secret "prom", key "token": auth: no such tenant' and error["class"] == "query"
    error = agent.wait_rounds("other")["error"]["text"]
    assert error == f"{words} without credentials (scoringEndpointAuthName is not set): who are you?"
