"""A real identity provider, oidc-provider: its tokens are renewed, and found active where it is asked about them."""

import json
import pathlib
import ssl
import subprocess
import urllib.parse
import urllib.request

import pytest
from lib import remote
from lib.agent import summary
from lib.certificates import Authority
from lib.fake import plain, results
from lib.kube import script
from lib.wait import LONG, wait_until

PROGRAM = pathlib.Path(__file__).parent / "oidc" / "provider.mjs"
ID, SECRET = "agent one", "s3cret+of/the agent"


class Provider:
    def __init__(self, url, authority):
        self.url, self.token_url, self.authority = url, f"{url}/token", authority
        self.tls = ssl.create_default_context(cafile=authority)
        self.seen = {}  # by token: what the provider said of it

    def introspect(self, token):
        """RFC 7662."""
        if token not in self.seen:
            form = urllib.parse.urlencode({"token": token, "client_id": ID, "client_secret": SECRET}).encode()
            with urllib.request.urlopen(f"{self.url}/token/introspection", form, LONG, context=self.tls) as reply:
                self.seen[token] = json.load(reply)
        return self.seen[token]


@pytest.fixture(name="provider")
def running_provider(tmp_path):
    folder = script("node-packages", "oidc")
    authority = Authority(tmp_path / "authority")
    command = [f"{folder}/node_modules/node/bin/node", PROGRAM, folder, *authority.issue("idp"), ID, SECRET]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            yield Provider(process.stdout.readline().strip(), authority.cert)
        finally:
            process.kill()


def test_sources_and_scorers(provider, fake, start_agent, tmp_path):
    def guarded(connection, request):
        said = provider.introspect((request.token or "").removeprefix("Bearer "))
        known = said.get("active") and said["client_id"] == ID and said["scope"] == "score:read"
        (results({}, 1) if known else plain("who?", 401))(connection, request)

    def write(name, **values):
        (tmp_path / name).mkdir()
        for key, value in values.items():
            (tmp_path / name / key.replace("_crt", ".crt")).write_text(value)

    known = {"client_id": ID, "token_url": provider.token_url, "ca_crt": provider.authority.read_text()}
    write("good", **known, client_secret=SECRET, scopes="score:read")
    write("wrong", **known, client_secret="another-secret")
    write("stranger", client_id=ID, client_secret=SECRET, token_url=provider.token_url)
    scorers = [summary(n, fake.on(f"/{n}", guarded), scoringEndpointAuthName=n) for n in ("good", "wrong", "stranger")]
    agent = start_agent({"summaries": scorers}, f"--secrets.dir={tmp_path}")
    assert agent.wait_scores("good") == [({}, 1)]
    status = agent.wait_all()
    for name, words in {
        "wrong": 'HTTP 401 Unauthorized: {"error":"invalid_client","error_description":"client authentication failed"}',
        "stranger": "certificate",
    }.items():
        assert status[name]["error"]["class"] == "auth"
        assert status[name]["error"]["text"].startswith(f"token request to {provider.token_url} failed: "), status[name]
        assert words in status[name]["error"]["text"]
    wait_until(lambda: len(provider.seen) >= 4, "the token is renewed", LONG)
    assert all(said.get("active") for said in provider.seen.values())
    assert agent.status("good")["error"] is None
    assert not fake.requests("/wrong") + fake.requests("/stranger")


def test_remote_write(provider, tmp_path):
    oauth2 = {"client_id": ID, "client_secret": SECRET, "token_url": provider.token_url, "scopes": ["score:read", "score:write"],
              "tls_config": {"ca_file": str(provider.authority)}}  # fmt: skip
    with remote.Receiver() as receiver, remote.Scoring(t=remote.counted(2)) as scores:
        with remote.Agent(tmp_path, scores, [remote.endpoint(receiver, oauth2=oauth2)]):
            receiver.wait(3)
            for arrival in receiver.with_samples()[:3]:
                said = provider.introspect(arrival.header("Authorization").removeprefix("Bearer "))
                assert said["scope"] == "score:read score:write"
