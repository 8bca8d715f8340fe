"""Tokens of OAuth 2.0 client credentials: requested once for all who share them, renewed before their end, and an
identity provider that fails or lies costs a round with its words and without the secret."""

import base64
import json
import time

import pytest
from lib import remote
from lib.agent import PROGRAM, summary
from lib.fake import answer, flood, hanging, plain, redirect, results, series
from lib.process import run

ID, SECRET = "agent one", "s3cret+of/the agent"
BASIC = "Basic " + base64.b64encode(b"agent%20one:s3cret%2Bof%2Fthe%20agent").decode()


@pytest.fixture(name="secrets")
def secrets_folder(tmp_path):
    def write(name, **values):
        (tmp_path / name).mkdir(exist_ok=True)
        for key, value in values.items():
            (tmp_path / name / key).write_text(value)

    write.dir = f"--secrets.dir={tmp_path}"
    return write


class Provider:
    """A token endpoint of a fake; each token has a number and an end, and a resource accepts those that it issued."""

    def __init__(self, fake, seconds=3600, path="/token", by_body=False):
        self.fake, self.seconds, self.path, self.by_body = fake, seconds, path, by_body
        self.ends, self.late, self.refused = {}, [], set()
        self.url = fake.on(path, self.issue)

    def issue(self, connection, request):
        if self.by_body and request.arguments.get("client_secret") != SECRET:
            answer({"error": "invalid_client"}, 401)(connection, request)
            return
        token = f"token-number-{len(self.ends) + 1}"
        self.ends[f"Bearer {token}"] = time.monotonic() + self.seconds
        answer({"access_token": token, "token_type": "bearer", "expires_in": self.seconds})(connection, request)

    def guard(self, good):
        def reply(connection, request):
            known = request.token in self.ends and request.token not in self.refused
            if known and time.monotonic() >= self.ends[request.token]:
                self.late.append(request.token)
            (good if known else plain("who?", 401))(connection, request)

        return reply

    def requests(self):
        return self.fake.requests(self.path)


def scoring(name):
    return {"scoringEndpointAuthName": name}


def test_one_request_for_source_and_scorers(fake, other_fake, start_agent, secrets):
    provider = Provider(other_fake)
    secrets("team", client_id=ID + "\n", client_secret=SECRET + "\n", token_url=provider.url, scopes="a b", audience="api")
    fake.on("/api/v1/query_range", provider.guard(series({})))
    scorers = [summary(n, fake.on(f"/{n}", provider.guard(results({}, 1))), source=fake.url,
                       sourceEndpointAuthName="team", **scoring("team")) for n in ("one", "two")]  # fmt: skip
    agent = start_agent({"summaries": scorers}, secrets.dir)
    for name in ("one", "two"):
        assert agent.wait_scores(name) == [({}, 1)]
        agent.wait_rounds(name, 3)
    (asked,) = provider.requests()
    assert asked.token == BASIC and asked.method == "POST"
    assert asked.arguments == {"grant_type": "client_credentials", "scope": "a b", "audience": "api"}
    assert {r.token for r in fake.requests()} == {"Bearer token-number-1"}


def test_renewed_before_its_end_and_after_a_401(fake, other_fake, start_agent, secrets):
    short, long = Provider(other_fake, 3, "/short"), Provider(other_fake, 3600, "/long")
    for name, provider in (("short", short), ("long", long)):
        secrets(name, client_id=ID, client_secret=SECRET, token_url=provider.url)
    scorers = [summary(n, fake.on(f"/{n}", p.guard(results({}, 1))), **scoring(n)) for n, p in (("short", short), ("long", long))]
    agent = start_agent({"summaries": scorers}, secrets.dir)
    agent.wait_until(lambda: len(short.requests()) >= 4, "the token is renewed")
    assert not short.late and agent.status("short")["error"] is None
    assert len(long.requests()) == 1
    long.refused.add("Bearer token-number-1")
    agent.wait_until(lambda: len(long.requests()) == 2, "another token is requested")
    agent.wait_until(lambda: agent.status("long")["error"] is None, "it is accepted")
    assert fake.requests("/long")[-1].token == "Bearer token-number-2"


def test_a_server_that_wants_parameters(fake, other_fake, start_agent, secrets):
    provider = Provider(other_fake, 3, by_body=True)
    secrets("s", client_id=ID, client_secret=SECRET, token_url=provider.url)
    agent = start_agent({"summaries": [summary("s", fake.on("/s", provider.guard(results({}, 1))), **scoring("s"))]}, secrets.dir)
    assert agent.wait_scores("s") == [({}, 1)]
    agent.wait_until(lambda: len(provider.ends) >= 3, "the token is renewed")
    assert agent.status("s")["error"] is None
    assert [r.token for r in provider.requests()[:3]] == [BASIC, None, None]
    assert provider.requests()[1].arguments == {"grant_type": "client_credentials", "client_id": ID, "client_secret": SECRET}


LIES = {
    "no_token": (answer({"token_type": "Bearer"}), "the response has no access_token"),
    "number": (answer({"access_token": 5}), "the response has no access_token"),
    "no_json": (plain("<html>secret-page</html>", Content_Type="text/html"), "the response is not a JSON object; Content-Type: text/html"),
    "huge": (flood(b'{"access_token": "', b"a", 1024, b'"}'), "exceeds the limit of 65536 bytes"),
    "mac": (answer({"access_token": "abcdefgh", "token_type": "mac"}), "its token_type is not Bearer"),
    "control": (answer({"access_token": "abc\r\nX-Evil: 1"}), "not a token: "),
    "moved": (redirect("http://127.0.0.1:1/token"), "HTTP 307"),
    "client": (answer({"error": "invalid_client", "error_description": f"{SECRET} is wrong"}, 401),
               'HTTP 401 Unauthorized: {"error": "invalid_client", "error_description": "*** is wrong"}'),
    "hangs": (hanging, "OAuth 2.0 token request timed out after "),  # what the source has left of the two seconds
}  # fmt: skip


def test_a_provider_that_lies(fake, other_fake, start_agent, secrets):
    fake.on("/s", results({}, 1))
    summaries = []
    for name, (reply, _) in LIES.items():
        secrets(name, client_id=ID, client_secret=SECRET, token_url=other_fake.on(f"/{name}", reply))
        summaries.append(summary(name, fake.url + "/s", timeout="2s", **scoring(name)))
    agent = start_agent({"summaries": summaries}, secrets.dir, "--log.level=debug")
    status = agent.wait_all()
    for name, (_, words) in LIES.items():
        error = status[name]["error"]
        assert (error["stage"], error["class"]) == ("scoring", "auth") and words in error["text"], error
    assert not fake.requests()
    # Other than the first time, the header is not tried alone.
    assert {r.token for r in other_fake.requests("/client")[:2]} == {BASIC, None}
    assert other_fake.requests("/client")[1].arguments["client_secret"] == SECRET
    agent.wait_rounds("client", 2)
    places = {p: agent.get(p).text for p in ("/", "/metrics", "/api/v1/status")}
    once = run(PROGRAM, "agent", f"--config.file={agent.file}", secrets.dir, "--once", "--output", "json")
    places["once"] = once.stdout + once.stderr
    agent.process.end()
    places["log"] = agent.log()
    for place, text in places.items():
        shown = [s for s in (SECRET, json.dumps(SECRET)[1:-1], BASIC[6:], "s3cret%2Bof", "secret-page") if s in text]
        assert len(text) > 100 and not shown, (place, shown)


@pytest.mark.parametrize("expires", [0, -5, 10**18, 10**30, None, "3600", "soon", [1]])
def test_a_lifetime_that_is_none(fake, start_agent, secrets, expires):
    said = {"access_token": "abcdefgh"} | ({} if expires is None else {"expires_in": expires})
    secrets("s", client_id=ID, client_secret=SECRET, token_url=fake.on("/token", plain("busy", 503), answer(said)))
    agent = start_agent({"summaries": [summary("s", fake.on("/s", results({}, 1)), **scoring("s"))]}, secrets.dir)
    assert agent.wait_scores("s") == [({}, 1)]
    agent.wait_until(lambda: len(fake.requests("/s")) >= 3, "three rounds")
    assert len(fake.requests("/token")) == 2  # one of them failed


def test_secrets_with_mistakes(fake, start_agent, secrets):
    known = {"client_id": ID, "client_secret": SECRET, "token_url": fake.on("/token", answer({"access_token": "abcdefgh"}))}
    wrong = {
        "half": ({"client_id": ID}, 'secret "half": it has the key "client_id" without "client_secret"'),
        "secret": ({"client_secret": "a"}, 'secret "secret": it has the key "client_secret" without "client_id"'),
        "scopes": ({"scopes": "a"}, 'secret "scopes": it has the key "scopes" without "client_id"'),
        "user": (known | {"username": "u", "password": "p"},
                 'secret "user", key "username": Authorization is set by the key "client_id" already'),
        "header": (known | {"header": "Authorization: x y"},
                   'secret "header", key "header": Authorization is set by the key "client_id" already'),
        "url": (known | {"token_url": "idp.example/token"},
                'secret "url", key "token_url": expected an http or https URL without a user'),
    }  # fmt: skip
    for name, (values, _) in wrong.items():
        secrets(name, **values)
    agent = start_agent({"summaries": [summary(n, fake.url + "/s", **scoring(n)) for n in wrong]}, secrets.dir)
    status = agent.wait_all()
    for name, (_, words) in wrong.items():
        assert (status[name]["error"]["class"], status[name]["error"]["text"]) == ("secret", words)
    assert not fake.requests()


def test_remote_write(fake, tmp_path):
    """A 401 costs no sample: they are sent again with the next token."""
    provider = Provider(fake)
    (tmp_path / "secret").write_text(SECRET + "\n")
    oauth2 = {"client_id": ID, "client_secret_file": f"{tmp_path}/secret", "token_url": "http://idp.example/token",
              "proxy_url": fake.url, "scopes": ["a", "b"], "endpoint_params": {"resource": "x y", "grant_type": "other"}}  # fmt: skip
    with remote.Receiver(remote.Answer(401)) as receiver, remote.Scoring(t=remote.counted(2)) as scores:
        with remote.Agent(tmp_path, scores, [remote.endpoint(receiver, oauth2=oauth2)]):
            receiver.wait(3)
    first, again = receiver.arrivals[:2]
    assert (first.status, again.status, first.body) == (401, 204, again.body)
    assert {a.header("Authorization") for a in receiver.arrivals} == {"Bearer token-number-1"}
    (asked,) = provider.requests()
    assert asked.token == BASIC
    assert asked.arguments == {"grant_type": "other", "scope": "a b", "resource": "x y"}
