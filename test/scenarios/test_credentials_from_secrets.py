"""CA bundles, client certificates, basic authentication and a header from Secrets: each scorer has its own, they are
read again when they change, and they go nowhere else."""

import base64
import contextlib
import socket
import ssl

import pytest

from lib.agent import PROGRAM, summary
from lib.certificates import Authority
from lib.fake import plain, redirect, results, running_fake, series
from lib.process import run
from lib.prometheus import running_prometheus
from lib.web import BASIC, PASSWORD, USER, client_context, web_file

KEY = "k3y-0f-the-team"


@pytest.fixture(scope="module", name="authority")
def one_authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module", name="stranger")
def another_authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("stranger"), "stranger")


@pytest.fixture(scope="module", name="pairs")
def client_pairs(authority, stranger):
    """Certificates and keys, as text."""
    made = {name: authority.issue(name) for name in ("one", "two", "three")}
    made["expired"] = authority.issue("expired", expired=True)
    made["foreign"] = stranger.issue("foreign")
    return {name: tuple(path.read_text() for path in pair) for name, pair in made.items()}


def server_context(authority, demanding=True):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue("server"))
    if demanding:
        context.load_verify_locations(authority.cert)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


@pytest.fixture(name="secrets")
def secrets_folder(tmp_path):
    def write(name, **values):
        """Files of a Secret; _ stands for the dot in the names of keys."""
        (tmp_path / name).mkdir(exist_ok=True)
        for key, value in values.items():
            fresh = tmp_path / f"{name}.new"
            fresh.write_text(value)
            fresh.rename(tmp_path / name / key.replace("_", "."))

    write.dir = f"--secrets.dir={tmp_path}"
    return write


def scoring_secret(name, key=None):
    return {"scoringEndpointAuthName": name} | ({"scoringEndpointAuthKey": key} if key else {})


def source_secret(name, key=None):
    return {"sourceEndpointAuthName": name} | ({"sourceEndpointAuthKey": key} if key else {})


def peers(fake, path):
    return {r.peer for r in fake.requests(path)}


def test_each_scorer_has_its_own_identity(start_agent, secrets, authority, stranger, pairs):
    """One server, many scorers: no connection of one is used for another, whatever is wrong with it."""
    ca = authority.cert.read_text()
    for name in ("one", "two", "expired", "foreign"):
        secrets(name, ca_crt=ca, tls_crt=pairs[name][0], tls_key=pairs[name][1])
    secrets("wrong_ca", ca_crt=stranger.cert.read_text(), tls_crt=pairs["one"][0], tls_key=pairs["one"][1])
    secrets("no_ca", tls_crt=pairs["one"][0], tls_key=pairs["one"][1])
    secrets("no_certificate", ca_crt=ca)
    secrets("wrong_key", ca_crt=ca, tls_crt=pairs["one"][0], tls_key=pairs["two"][1])
    # As in the volume of a service account, whose ca.crt is that of its API server.
    secrets("account", ca_crt=ca, tls_crt=pairs["one"][0], tls_key=pairs["one"][1], namespace="default")
    refused = {
        "expired": "it may not accept the client certificate",
        "foreign": "it may not accept the client certificate",
        "wrong_ca": "certificate",
        "no_ca": "certificate",
        "account": "certificate",
        "no_certificate": "it may require a client certificate",
        "wrong_key": 'secret "wrong_key", key "tls.key": not the key of the certificate in "tls.crt"',
        "nothing": "certificate",
    }
    with running_fake(server_context(authority)) as fake:
        scorers = [summary("nothing", fake.on("/nothing", results({}, 1)))]
        for name in ["one", "two", *refused]:
            if name != "nothing":
                scorers.append(summary(name, fake.on(f"/{name}", results({}, 1)), **scoring_secret(name)))
        agent = start_agent({"summaries": scorers}, secrets.dir)
        # Rounds of all, while connections of the good ones are idle.
        for name in ("one", "two"):
            agent.wait_rounds(name, 3)
        status = {s["scoreName"]: s for s in agent.status()["scorers"]}
        for name, text in refused.items():
            error = agent.wait_rounds(name)["error"]
            assert error["stage"] == "scoring" and text in error["text"], error
            assert error["class"] == ("secret" if name == "wrong_key" else "tls"), error
            assert not fake.requests(f"/{name}"), name
        assert status["one"]["error"] is None and status["two"]["error"] is None
        assert peers(fake, "/one") == {"one"} and peers(fake, "/two") == {"two"}
        # A new certificate, and the authority of one that was wrong.
        secrets("one", tls_crt=pairs["three"][0])
        secrets("one", tls_key=pairs["three"][1])
        secrets("wrong_ca", ca_crt=ca)
        agent.wait_until(lambda: "three" in peers(fake, "/one"), "the new certificate is used")
        assert agent.wait_scores("wrong_ca") == [({}, 1)]
        assert peers(fake, "/two") == {"two"} and peers(fake, "/wrong_ca") == {"one"}
        # An authority that no longer counts: its connections do not go on.
        secrets("two", ca_crt=stranger.cert.read_text())
        agent.wait_until(lambda: agent.status("two")["error"], "two fails")
        assert agent.status("two")["error"]["class"] == "tls"


def test_prometheus_with_tls_and_basic_authentication(fake, start_agent, secrets, authority, pairs, tmp_path):
    """A real Prometheus that demands a client certificate and a password."""
    pair = authority.issue("prometheus")
    web = web_file(tmp_path, pair, users=True, client_auth_type="RequireAndVerifyClientCert", client_ca_file=str(authority.cert))
    known = {"ca_crt": authority.cert.read_text(), "tls_crt": pairs["one"][0], "tls_key": pairs["one"][1]}
    secrets("good", **known, username=USER, password=PASSWORD + "\n")
    secrets("bad", **known, username=USER, password="another password")
    secrets("none", **known)
    query = 'label_replace(vector(3), "node", "n1", "", "")'
    scoring = fake.on("/s", results({}, 1))
    reader = client_context(authority, authority.issue("reader")), BASIC
    with running_prometheus(flags=[f"--web.config.file={web}"], web=reader) as prometheus:
        names = ("good", "bad", "none")
        scorers = [summary(n, scoring, source=prometheus.url, query=query, **source_secret(n)) for n in names]
        agent = start_agent({"summaries": scorers}, secrets.dir)
        assert agent.wait_scores("good") == [({}, 1)]
        assert fake.requests("/s")[0].json["data"][0]["metric"] == {"node": "n1"}
        for name in ("bad", "none"):
            error = agent.wait_rounds(name)["error"]
            assert (error["stage"], error["class"]) == ("source", "http_4xx") and "401" in error["text"], error
        secrets("bad", password=PASSWORD)
        assert agent.wait_scores("bad") == [({}, 1)]
        assert PASSWORD not in agent.log() and "another password" not in agent.log()


def test_header_and_basic_authentication(fake, start_agent, secrets):
    """Each where it is configured, next to a bearer token where there is one, and not where it is not."""
    fake.on("/api/v1/query_range", series({}))
    good = results({}, 1)
    basic = "Basic " + base64.b64encode(b"user:pass word").decode()

    def on(path, **wanted):
        def reply(connection, request):
            has = all(request.headers.get(name.replace("_", "-")) == value for name, value in wanted.items())
            (good if has else plain("denied", 401))(connection, request)

        return fake.on(path, reply)

    secrets("team", token="for-the-api", header=f"X-API-Key: {KEY}\n")
    secrets("tenant", header="X-Scope-OrgID: team-a")
    secrets("user", username="user", password="pass word\n", header="X-Scope-OrgID: team-b")
    secrets("other", header="Authorization: ApiKey abc")
    secrets("both", token="t", username="user", password="pass word")
    with_user = on("/user", Authorization=basic, X_Scope_OrgID="team-b").replace("http://", "http://old:secret@")
    scorers = [
        summary("team", on("/team", Authorization="Bearer for-the-api", X_API_Key=KEY), source=fake.url,
                **source_secret("tenant"), **scoring_secret("team", "token")),
        summary("user", with_user, **scoring_secret("user")),
        summary("other", on("/other", Authorization="ApiKey abc"), **scoring_secret("other")),
        # The token that is named counts.
        summary("both", on("/both", Authorization="Bearer t"), **scoring_secret("both", "token")),
        summary("missing", on("/missing"), **scoring_secret("user", "token")),
    ]  # fmt: skip
    agent = start_agent({"summaries": scorers}, secrets.dir)
    for name in ("team", "user", "other", "both"):
        assert agent.wait_scores(name) == [({}, 1)]
    asked = fake.requests("/api/v1/query_range")[0].headers
    assert asked["X-Scope-OrgID"] == "team-a" and "X-API-Key" not in asked and "Authorization" not in asked
    assert "X-Scope-OrgID" not in fake.requests("/team")[0].headers
    error = agent.wait_rounds("missing")["error"]
    assert error["text"] == 'secret "user", key "token": key not found; name no key to send no bearer token'
    assert not fake.requests("/missing")
    secrets("tenant", header="X-Scope-OrgID: team-c\r\nX-Evil: 1")
    agent.wait_until(lambda: agent.status("team")["error"], "the header is refused")
    error = agent.status("team")["error"]["text"]
    assert error == 'secret "tenant", key "header": expected one header, found several lines'
    assert "X-Evil" not in str([r.headers for r in fake.requests()]) + agent.log()


@contextlib.contextmanager
def listening():
    """A port, and whether anybody connected to it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)

        def was_called():
            try:
                server.accept()[0].close()
            except BlockingIOError:
                return False
            return True

        yield server.getsockname()[1], was_called


@pytest.mark.parametrize("status", [302, 307])
def test_not_sent_to_where_a_redirect_leads(start_agent, secrets, authority, pairs, status):
    ca, (certificate, key) = authority.cert.read_text(), pairs["one"]
    secrets("basic", ca_crt=ca, tls_crt=certificate, tls_key=key, username="user", password="pass word")
    secrets("header", ca_crt=ca, tls_crt=certificate, tls_key=key, token="s3cret-token", header=f"X-API-Key: {KEY}")
    with running_fake(server_context(authority)) as fake, listening() as (port, was_called):
        there = f"https://127.0.0.1:{port}/there"
        fake.on("/api/v1/query_range", redirect(there, status))
        fake.on("/here", results({}, 2))
        secret = {"basic": scoring_secret("basic"), "header": scoring_secret("header", "token")}
        scorers = [summary(f"{n}_away", fake.on("/away", redirect(there, status)), **s) for n, s in secret.items()]
        scorers += [summary(f"{n}_home", fake.on("/home", redirect("/here", status)), **s) for n, s in secret.items()]
        scorers.append(summary("moved", fake.on("/s", results({}, 1)), source=fake.url, **source_secret("basic")))
        agent = start_agent({"summaries": scorers}, secrets.dir)
        for name in ("basic_home", "header_home"):
            assert agent.wait_scores(name) == [({}, 2)]
        for name in ("basic_away", "header_away", "moved"):
            error = agent.wait_rounds(name, 2)["error"]
            assert error["class"] == "http_other" and "is not followed: it is another origin" in error["text"], error
        assert not was_called()
        here = [r.headers for r in fake.requests("/here")]
        assert {h["Authorization"].split()[0] for h in here} == {"Basic", "Bearer"}
        assert KEY in {h.get("X-API-Key") for h in here} and peers(fake, "/here") == {"one"}


def test_never_shown(fake, start_agent, secrets, authority, pairs):
    """Servers that put what they got into their errors, Secrets with mistakes, and everything that the agent says."""
    password, header = "pa55 w0rd & more", "k3y-0f-tenant"
    certificate, key = pairs["one"]
    secrets("basic", username="user", password=password)
    secrets("header", header=f"X-Api-Key: {header}")
    secrets("mixed", tls_crt=certificate, tls_key=pairs["two"][1], ca_crt=authority.cert.read_text())
    secrets("swapped", tls_crt=key, tls_key=certificate)
    secrets("colon", username=f"user:{password}", password="x")
    secrets("lines", header=f"{header}\n{header}")

    def echo(connection, request):
        said = " ".join(v for k, v in request.headers.items() if k in ("Authorization", "X-Api-Key"))
        plain(f"denied: {said}", 401)(connection, request)

    names = ("basic", "header", "mixed", "swapped", "colon", "lines")
    scorers = [summary(n, fake.on(f"/{n}", echo), interval=2, **scoring_secret(n)) for n in names]
    agent = start_agent({"summaries": scorers}, secrets.dir, "--log.level=debug")
    status = agent.wait_all()
    for name in ("basic", "header"):
        assert "denied:" in status[name]["error"]["text"] and "***" in status[name]["error"]["text"]
    for name in ("mixed", "swapped", "colon", "lines"):
        assert f'secret "{name}", key ' in status[name]["error"]["text"] and not fake.requests(f"/{name}")
    assert status["basic"]["scoringSecret"] == {"name": "basic", "key": None}
    places = {p: agent.get(p).text for p in ("/", "/metrics", "/api/v1/status")}
    for output in ("table", "json", "prom"):
        once = run(PROGRAM, "agent", f"--config.file={agent.file}", secrets.dir, "--once", "--output", output)
        places[output] = once.stdout + once.stderr
    agent.process.end()
    places["log"] = agent.log()
    secret = [password, header, base64.b64encode(f"user:{password}".encode()).decode()]
    secret += [line for pem in (key, pairs["two"][1], certificate) for line in pem.splitlines() if len(line) > 20]
    secret = [s for s in secret if "-----" not in s]
    for place, text in places.items():
        assert len(text) > 100, place
        assert not [s for s in secret if s in text], place
