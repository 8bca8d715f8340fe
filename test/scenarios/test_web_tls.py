"""Endpoints with TLS and basic authentication: scrapers with the right certificate and password get scores, nobody else,
and certificates are replaced while they scrape."""

import contextlib
import http.client
import json
import os
import re
import ssl
import subprocess
import threading

import pytest

from lib.agent import running_agent, summary
from lib.certificates import Authority
from lib.fake import results
from lib.prometheus import running_prometheus
from lib.process import environment
from lib.wait import DEADLINE
from lib.web import BASIC, PASSWORD, USER, client_context, tls_agent, web_file

@pytest.fixture(scope="module", name="authority")
def one_authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


def curl(*arguments):
    """(exit status, HTTP status, body)"""
    done = subprocess.run(
        ["curl", "-sS", "-w", "\n%{http_code}", "-m", str(DEADLINE), *map(str, arguments)],
        capture_output=True, text=True, env=environment(), check=False,
    )  # fmt: skip
    body, _, status = done.stdout.rpartition("\n")
    return done.returncode, int(status or 0), body


# ---- Scrapers ----


def test_prometheus_and_curl(fake, authority, tmp_path):
    server, client = authority.issue("server"), authority.issue("scraper", "DNS:scraper.example")
    other = authority.issue("other", "DNS:other.example")
    web = web_file(
        tmp_path, server, users=True, client_auth_type="RequireAndVerifyClientCert",
        client_ca_file=str(authority.cert), client_allowed_sans=["scraper.example"],
    )  # fmt: skip
    password = tmp_path / "password"
    password.write_text(PASSWORD)
    with tls_agent(fake, web, client_context(authority, client), BASIC) as agent:
        target = {"static_configs": [{"targets": [f"127.0.0.1:{agent.port}"]}], "scheme": "https"}
        tls = {"ca_file": str(authority.cert), "server_name": "localhost"}
        pair = {"cert_file": str(client[0]), "key_file": str(client[1])}
        auth = {"username": USER, "password_file": str(password)}
        jobs = [
            {"job_name": "right", **target, "tls_config": {**tls, **pair}, "basic_auth": auth},
            {"job_name": "no_certificate", **target, "tls_config": tls, "basic_auth": auth},
            {"job_name": "wrong_password", **target, "tls_config": {**tls, **pair},
             "basic_auth": {**auth, "password_file": str(client[0])}},
        ]  # fmt: skip
        with running_prometheus(*jobs) as prometheus:
            prometheus.wait_query('dynamic_score{job="right"}', "Prometheus has the score")
            for job in ("no_certificate", "wrong_password"):
                prometheus.wait_query(f'up{{job="{job}"}} == 0', f"{job} is refused")
            assert not prometheus.query('dynamic_score{job!="right"}')

        url, trusted, user = f"https://127.0.0.1:{agent.port}/metrics", ("--cacert", authority.cert), ("-u", f"{USER}:{PASSWORD}")
        right = ("--cert", client[0], "--key", client[1])
        assert curl(*trusted, *right, *user, url)[:2] == (0, 200)
        assert curl(*trusted, *right, "-u", f"{USER}:wrong", url)[:2] == (0, 401)
        assert curl(*trusted, *right, url)[:2] == (0, 401)
        for wrong in ((), ("--cert", other[0], "--key", other[1])):
            status, code, _ = curl(*trusted, *wrong, *user, url)
            assert status and not code
        status, code, body = curl(url.replace("https", "http"))
        assert (status, code, body) == (0, 400, "Client sent an HTTP request to an HTTPS server.\n")


# ---- What is negotiated ----

STRONG = ["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-CHACHA20-POLY1305"]


def handshake(port, *options):
    """What openssl says of a handshake, None if there was none. It offers whatever it can."""
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", *options], input="", capture_output=True, text=True,
        check=False, timeout=DEADLINE,
    )  # fmt: skip
    return done.stdout if done.returncode == 0 else None


def old(version):
    return handshake_options("-" + version)


def handshake_options(version, ciphers="ALL:eNULL"):
    return version, "-cipher", f"{ciphers}:@SECLEVEL=0"


def accepted_suites(port):
    """All suites of TLS 1.2, the server's choice first: offers everything, then all but what it chose, ..."""
    found, offered = [], "ALL:eNULL"
    while said := handshake(port, *handshake_options("-tls1_2", offered)):
        found.append(re.search(r"Cipher is (\S+)", said)[1])
        offered += f":!{found[-1]}"
    return found


def test_defaults_are_strong(fake, authority, tmp_path):
    server = authority.issue("strong")
    with tls_agent(fake, web_file(tmp_path, server), client_context(authority)) as agent:
        for version in ("tls1", "tls1_1"):
            assert not handshake(agent.port, *old(version)), version
        for version in ("tls1_2", "tls1_3"):
            said = handshake(agent.port, f"-{version}", "-CAfile", str(authority.cert))
            assert "Verify return code: 0 (ok)" in said and "Compression: NONE" in said
        assert accepted_suites(agent.port) == STRONG
        assert "Secure Renegotiation IS supported" in handshake(agent.port, "-tls1_2")
        assert refuses_renegotiation(agent.port)
        assert agent.scores("s")


def refuses_renegotiation(port):
    """openssl asks for a new handshake on a line with an R; the server ends the connection, upon which openssl exits."""
    with subprocess.Popen(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-tls1_2"], stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    ) as client:  # fmt: skip
        client.stdin.write("R\n")
        client.stdin.flush()
        said = client.stdout.read()
        return "RENEGOTIATING" in said and said.endswith("closed\n")


def test_settings_hold(fake, authority, tmp_path):
    """Each replaces the one before without a restart."""
    server = authority.issue("settings")
    cases = [
        ({"min_version": "TLS13"}, ["-tls1_3"], ["-tls1_2"]),
        ({"min_version": "TLS11"}, old("tls1_1"), old("tls1")),
        (
            {"cipher_suites": ["TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"], "max_version": "TLS12"},
            handshake_options("-tls1_2", "ECDHE-ECDSA-AES256-GCM-SHA384"),
            handshake_options("-tls1_2", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ),
        ({"curve_preferences": ["CurveP384", "CurveP256"]}, ["-groups", "P-384"], ["-groups", "X25519"]),
        ({}, ["-groups", "X25519"], old("tls1_1")),
    ]  # fmt: skip
    with tls_agent(fake, web_file(tmp_path, server), client_context(authority)) as agent:
        for settings, accepted, refused in cases:
            web_file(tmp_path, server, **settings)
            assert agent.reload().status == 200

            def holds(accepted=accepted, refused=refused):
                return handshake(agent.port, *accepted) and not handshake(agent.port, *refused)

            agent.wait_until(holds, f"{settings} are in force")


# ---- Replaced files ----


def publish(folder, n, pair):
    """As a Secret's volume does it: a new folder, and one symbolic link that is replaced."""
    data = folder / f"..{n}"
    data.mkdir()
    for name, file in zip(("tls.crt", "tls.key"), pair, strict=True):
        (data / name).write_bytes(file.read_bytes())
    fresh = folder / "..new"
    fresh.symlink_to(data.name)
    os.replace(fresh, folder / "..data")


def served_certificate(port):
    return ssl.PEM_cert_to_DER_cert(ssl.get_server_certificate(("127.0.0.1", port)))


def der(file):
    return ssl.PEM_cert_to_DER_cert(file.read_text())


class Scraper(threading.Thread):
    """Scrapes until it is stopped: each time on a new connection, or on one that is kept."""

    def __init__(self, agent, context, kept):
        super().__init__()
        self.agent, self.context, self.kept = agent, context, kept
        self.stopping, self.scrapes, self.error = threading.Event(), 0, None

    def run(self):
        try:
            while not self.stopping.is_set():
                self.scrape_for_a_while()
        except Exception as error:  # for the test's thread
            self.error = error

    def scrape_for_a_while(self):
        connection = http.client.HTTPSConnection("127.0.0.1", self.agent.port, timeout=DEADLINE, context=self.context)
        with contextlib.closing(connection):
            while True:
                connection.request("GET", "/metrics")
                answer = connection.getresponse()
                assert answer.status == 200 and b"dynamic_score{" in answer.read()
                self.scrapes += 1
                if not self.kept or self.stopping.is_set():
                    return


def test_certificates_rotate_under_load(fake, authority, tmp_path):
    pairs = [authority.issue(f"rotated-{n}", rsa=n == 1) for n in range(3)]
    for link in ("tls.crt", "tls.key"):
        (tmp_path / link).symlink_to(f"..data/{link}")
    publish(tmp_path, 0, pairs[0])
    web = web_file(tmp_path, (tmp_path / "tls.crt", tmp_path / "tls.key"))
    context = client_context(authority)
    with tls_agent(fake, web, context) as agent:
        scrapers = [Scraper(agent, context, kept) for kept in (False, False, True, True)]
        for scraper in scrapers:
            scraper.start()
        try:
            for n, pair in enumerate(pairs[1:], 1):
                publish(tmp_path, n, pair)
                agent.wait_until(lambda cert=pair[0]: served_certificate(agent.port) == der(cert), f"certificate {n} is served")
            counts = [scraper.scrapes for scraper in scrapers]
            agent.wait_until(
                lambda: all(s.error or s.scrapes > n for s, n in zip(scrapers, counts, strict=True)), "all scrape on"
            )
        finally:
            for scraper in scrapers:
                scraper.stopping.set()
                scraper.join()
        assert [s.error for s in scrapers] == [None] * len(scrapers)


def test_bad_files(fake, authority, tmp_path):
    """They prevent a start; later, the last valid certificate is kept."""
    good, other = authority.issue("good"), authority.issue("mismatched")
    cases = [
        ((good[0], other[1]), f"{other[1]} is not the key of the certificate in {good[0]}"),
        (authority.issue("expired", expired=True), "expired.crt: the certificate expired at 2"),
        ((tmp_path / "missing.crt", good[1]), "missing.crt: No such file or directory"),
        ((good[1], good[1]), f"{good[1]}: no certificate in PEM format found"),
        ((good[0], good[0]), f"{good[0]}: no private key in PEM format found"),
    ]
    config = {"summaries": [summary("s", fake.on("/s", results({}, 1)))]}
    for pair, words in cases:
        with running_agent(config, f"--web.config.file={web_file(tmp_path, pair)}", start=False) as agent:
            agent.launch()
            assert agent.process.wait() != 0
            assert words in agent.log(), agent.log()
    files = tmp_path / "tls.crt", tmp_path / "tls.key"
    for file, source in zip(files, good, strict=True):
        file.write_bytes(source.read_bytes())
    with tls_agent(fake, web_file(tmp_path, files), client_context(authority)) as agent:
        files[0].write_bytes(other[0].read_bytes())
        agent.wait_log(f"{files[1]} is not the key of the certificate in {files[0]}")
        assert served_certificate(agent.port) == der(good[0])
        files[1].write_bytes(other[1].read_bytes())
        agent.wait_until(lambda: served_certificate(agent.port) == der(other[0]), "the other one is served")


def test_sessions_are_resumed(fake, authority, tmp_path):
    """A scraper that comes back saves both sides a signature. With client certificates each connection is verified."""
    server, client = authority.issue("resumed"), authority.issue("resuming")
    web = web_file(tmp_path, server)
    ticket = tmp_path / "ticket"
    with tls_agent(fake, web, client_context(authority, client)) as agent:
        for version in ("-tls1_2", "-tls1_3"):
            ask = ["-sess_out", str(ticket)]
            first = subprocess.run(
                ["openssl", "s_client", "-connect", f"127.0.0.1:{agent.port}", version, *ask, "-ign_eof"],
                input="GET /-/healthy HTTP/1.0\r\nHost: localhost\r\n\r\n", capture_output=True, text=True, check=True,
                timeout=DEADLINE,
            )  # fmt: skip
            assert "200 OK" in first.stdout
            assert "Reused, TLSv1." in handshake(agent.port, version, "-sess_in", str(ticket))
