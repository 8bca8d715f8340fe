"""TLS is always verified: an untrusted certificate is a clear error, and SSL_CERT_FILE makes it trusted."""

import ssl
import subprocess

import pytest

from lib.agent import running_agent, summary
from lib.fake import results, running_fake, series
from lib.process import environment


def make_certificate(folder, name, *extensions):
    key, cert = folder / f"{name}.key", folder / f"{name}.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    command += ["-subj", f"/CN={name}", "-keyout", key, "-out", cert]
    for extension in extensions:
        command += ["-addext", extension]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    return key, cert


@pytest.fixture(scope="module", name="servers")
def two_servers(tmp_path_factory):
    """One with a certificate for 127.0.0.1, and one with a certificate for another host; a file with both
    certificates."""
    folder = tmp_path_factory.mktemp("tls")
    pairs = [
        make_certificate(folder, "here", "subjectAltName=IP:127.0.0.1"),
        make_certificate(folder, "other", "subjectAltName=DNS:other.example"),
    ]
    both = folder / "both.pem"
    both.write_text("".join(cert.read_text() for _, cert in pairs))
    contexts = []
    for key, cert in pairs:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        contexts.append(context)
    with running_fake(contexts[0]) as here, running_fake(contexts[1]) as other:
        for fake in (here, other):
            fake.on("/scoring", results({}, 1))
            fake.on("/api/v1/query_range", series({}))
        yield here, other, pairs[0][1], both


def errors(config, env):
    with running_agent(config, env=env) as agent:
        return {name: s["error"] for name, s in agent.wait_all().items()}


def configured(here, other, fake):
    return {
        "summaries": [
            summary("here", here.url, source=here.url),
            summary("other", other.url),
            summary("source", fake.on("/s", results({}, 1)), source=other.url),
        ]
    }


def test_refused(servers, fake):
    here, other, _, _ = servers
    for name, error in errors(configured(here, other, fake), environment()).items():
        assert error["class"] == "tls" and error["stage"] == ("scoring" if name == "other" else "source"), error
        assert "certificate" in error["text"], error  # in OpenSSL's words
    assert not here.requests() and not other.requests()


def test_trusted(servers, fake):
    here, other, one, _ = servers
    told = errors(configured(here, other, fake), environment(SSL_CERT_FILE=str(one)))
    assert told["here"] is None
    assert told["other"]["class"] == told["source"]["class"] == "tls"
    assert here.requests("/scoring") and not other.requests()


def test_the_name_must_fit(servers, fake):
    here, other, _, both = servers
    told = errors(configured(here, other, fake), environment(SSL_CERT_FILE=str(both)))
    assert told["here"] is None
    assert told["other"]["class"] == "tls" and "127.0.0.1" in told["other"]["text"]
    assert not other.requests()


def test_plain_where_tls_is_expected(servers, fake, start_agent):
    https, http = fake.url.replace("http", "https"), fake.on("/s", results({}, 1))
    scorers = [summary("mixed_up", https), summary("fine", http)]
    scorers.append(summary("plain", servers[0].url.replace("https", "http")))
    status = start_agent({"summaries": scorers}).wait_all()
    assert status["mixed_up"]["error"]["class"] == "tls"
    words = f"TLS handshake with 127.0.0.1:{fake.port} failed; if it is an http port, use http://: "
    assert status["mixed_up"]["error"]["text"].startswith(words)
    assert status["plain"]["error"]["class"] == "broken"
    assert status["fine"]["error"] is None
