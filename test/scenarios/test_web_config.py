"""--web.config.file makes the agent serve over TLS to those who know a password, and a change of the file or
of a certificate is taken without a restart."""

import ctypes
import os
import re
import subprocess

import pytest
from lib.agent import PROGRAM, running_agent
from lib.process import free_port, run
from lib.prometheus import running_prometheus
from lib.wait import wait_until

USERS = {"alice": "correct horse", "bob": "staple:battery"}
TLS = "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n"
OK = "dynamic_scoring_web_config_last_reload_successful"


def hashed(password, cost=5):
    """$2b$ as any program writes it."""
    libcrypt = ctypes.CDLL("libcrypt.so.1")  # Python 3.13 has no module for it
    libcrypt.crypt.restype = libcrypt.crypt_gensalt.restype = ctypes.c_char_p
    return libcrypt.crypt(password.encode(), libcrypt.crypt_gensalt(b"$2b$", cost, None, 0)).decode()


def certificate(folder, name="server", subject="localhost"):
    """A certificate for localhost, in folder/name.crt and .key, signed by itself."""
    run(
        *f"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN={subject}".split(),
        *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", folder / f"{name}.key.new"),
        *("-out", folder / f"{name}.crt.new"),
    )
    for end in ("key", "crt"):
        (folder / f"{name}.{end}.new").rename(folder / f"{name}.{end}")


@pytest.fixture
def folder(tmp_path):
    certificate(tmp_path)
    return tmp_path


def write(folder, text, name="web.yml"):
    (folder / "new").write_text(text)
    (folder / "new").rename(folder / name)
    return folder / name


def curl(url, *more):
    """The status, 0 without an answer."""
    command = ["curl", "-s", "-o", os.devnull, "-w", "%{http_code}", *map(str, more), url]
    return int(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout)


def secured(folder, users=USERS, more=""):
    entries = "".join(f"  {name}: {hashed(password)}\n" for name, password in users.items())
    return write(folder, f"{TLS}basic_auth_users:\n{entries}{more}")


class Secured:
    """The agent over HTTPS, through curl."""

    def __init__(self, agent, folder):
        self.agent, self.url, self.ca = agent, f"https://127.0.0.1:{agent.port}", folder / "server.crt"

    def status(self, path="/metrics", user="alice", password=USERS["alice"], *more):
        login = ["-u", f"{user}:{password}"] if user else []
        return curl(self.url + path, "--cacert", self.ca, *login, *more)

    def text(self, path, *more):
        return run("curl", "-sS", "--cacert", self.ca, "-u", f"alice:{USERS['alice']}", *more, self.url + path).stdout

    def wait_ok(self, value):
        """Waits for the metric and the status page of the file."""
        ok = f"{OK} {value}"
        wait_until(lambda: re.search(rf"^{ok}$", self.text("/metrics"), re.M), ok)


def start(agent, folder):
    """Without agent.start(), which asks for /-/ready over plain HTTP."""
    agent.launch()
    there = Secured(agent, folder)
    agent.wait_until(lambda: there.status("/-/ready") == 200, "the agent is ready over TLS")
    return there


def test_scrapers_need_tls_and_a_password(folder):
    file = secured(folder, more="http_server_config:\n  headers:\n    X-Frame-Options: deny\n")
    with running_agent({"summaries": []}, f"--web.config.file={file}", start=False) as agent:
        there = start(agent, folder)
        for path in ("/metrics", "/", "/api/v1/status", "/-/healthy", "/none"):
            assert there.status(path, None) == 401, path
        assert there.status(user="bob", password=USERS["bob"]) == 200
        assert there.status(user="alice", password=USERS["bob"]) == 401
        assert there.status(user="carol") == 401
        assert curl(there.url + "/metrics") == 0  # its CA is not known
        assert curl(f"http://127.0.0.1:{agent.port}/metrics") == 400  # not over TLS
        head = run("curl", "-sSI", "--cacert", there.ca, there.url + "/").stdout
        assert 'WWW-Authenticate: Basic realm="dynamic-scoring"' in head and "X-Frame-Options: deny" in head

        target = {"static_configs": [{"targets": [f"127.0.0.1:{agent.port}"]}], "scheme": "https"}
        tls = {"ca_file": str(there.ca)}
        login = {"username": "alice", "password": USERS["alice"]}
        with running_prometheus(
            {"job_name": "good", **target, "tls_config": tls, "basic_auth": login},
            {"job_name": "stranger", **target, "tls_config": tls, "basic_auth": {**login, "password": "guess"}},
            {"job_name": "anyone", **target, "tls_config": tls},
            {"job_name": "trusting_none", **target, "basic_auth": login},
        ) as prometheus:
            prometheus.wait_query('up{job="good"} == 1', "the scraper with the password is let in")
            prometheus.wait_query('count(up{job!="good"} == 0) == 3', "the others have been refused")
            assert not prometheus.query('up{job!="good"} == 1')
        for secret in [*USERS.values(), "$2b$", "PRIVATE KEY"]:
            assert secret not in agent.log()


def test_changes_are_taken_without_a_restart(folder):
    file = secured(folder)
    with running_agent({"summaries": []}, f"--web.config.file={file}", start=False) as agent:
        there = start(agent, folder)
        there.wait_ok(1)
        certificate(folder, subject="renewed")
        wait_until(lambda: there.status() == 200, "the new certificate is in use")
        assert "subject: CN=renewed" in subprocess.run(
            ["curl", "-sv", "--cacert", there.ca, there.url], capture_output=True, text=True, check=False
        ).stderr  # fmt: skip
        secured(folder, {"alice": USERS["alice"]})
        wait_until(lambda: there.status(user="bob", password=USERS["bob"]) == 401, "bob is gone")

        renamed = secured(folder, {"bob": USERS["bob"], "alice": USERS["alice"]}).read_text().replace("  bob: ", "  carol: ")
        wait_until(lambda: there.status(user="bob", password=USERS["bob"]) == 200, "bob is back")
        write(folder, renamed)
        wait_until(lambda: there.status(user="carol", password=USERS["bob"]) == 200, "bob's name is carol now")
        assert there.status(user="bob", password=USERS["bob"]) == 401

        write(folder, "basic_auth_users:\n  alice: changeme\n")
        there.wait_ok(0)
        assert there.status() == 200 and there.status(user=None) == 401
        agent.wait_log("web configuration rejected; the last valid one stays active")
        assert "basic_auth_users.alice: expected a bcrypt hash" in agent.log() and "changeme" not in agent.log()
        assert "web.yml:2:10: error: basic_auth_users.alice" in there.text("/api/v1/status")
        assert there.status("/-/reload", "alice", USERS["alice"], "-X", "POST") == 400
        text = there.text("/-/reload", "-X", "POST")
        assert text.endswith("configuration applied\nweb configuration rejected; the last valid one stays active\n"), text

        secured(folder)
        there.wait_ok(1)
        (folder / "server.key").write_text("nothing")
        there.wait_ok(0)
        assert there.status() == 200


def test_a_file_that_has_become_empty_opens_nothing(folder):
    """A full disk leaves it so."""
    file = write(folder, f"basic_auth_users:\n  alice: {hashed(USERS['alice'])}\n")
    with running_agent({"summaries": []}, f"--web.config.file={file}", start=False) as agent:
        agent.launch()
        url = f"http://127.0.0.1:{agent.port}/metrics"
        agent.wait_until(lambda: curl(url, "-u", f"alice:{USERS['alice']}") == 200, "alice is let in")
        file.write_text("\n")
        agent.wait_until(lambda: "web configuration rejected" in agent.log() or curl(url) == 200, "the change is seen")
        assert curl(url) == 401 and "the file is empty, but was not before" in agent.log()
        file.write_text("{}\n")
        agent.wait_until(lambda: curl(url) == 200, "nobody is asked for a password")


def test_rate_limit_spares_probes(folder):
    file, probes = write(folder, "rate_limit:\n  interval: 1h\n  burst: 2\n"), f"127.0.0.1:{free_port()}"
    flags = [f"--web.config.file={file}", f"--health-probe-bind-address={probes}"]
    with running_agent({"summaries": []}, *flags, start=False) as agent:
        agent.launch()
        agent.wait_until(lambda: curl(f"http://{probes}/-/ready") == 200, "the agent is ready")
        wait_until(lambda: agent.get("/metrics").status == 429, "the limit is reached")
        assert agent.get("/metrics").headers["Retry-After"] == "3600"
        assert curl(f"http://{probes}/-/ready") == 200


# The cases of exporter-toolkit's own tests that read other files, or names of Go's.
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", None),
        (TLS, None),
        (TLS + "  client_auth_type: VerifyClientCertIfGiven\n", None),
        (TLS + "  client_auth_type: RequireAnyClientCert\n", None),
        (TLS + "  client_auth_type: RequireAndVerifyClientCert\n  client_ca_file: server.crt\n", None),
        (TLS + "  client_auth_type: RequireAndVerifyClientCert\n", "4:21: error: tls_server_config.client_auth_type"),
        (TLS + "  client_ca_file: somefile\n", "4:19: error: tls_server_config.client_ca_file"),
        (TLS + "  client_ca_file: /dev/null\n", "4:19: error: tls_server_config.client_ca_file"),
        (TLS + "  client_auth_type: x\n", "4:21: error: tls_server_config.client_auth_type"),
        (TLS + "  min_version: TLS111\n", "4:16: error: tls_server_config.min_version"),
        (TLS + "  min_version: TLS13\n  max_version: TLS12\n", "tls_server_config.m"),
        (TLS + "  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA2048]\n", "error: tls_server_config.cipher_suites"),
        (TLS + "  cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]\n  max_version: TLS12\n", None),
        (TLS + "  curve_preferences: [CurveP257]\n", "error: tls_server_config.curve_preferences"),
        (TLS + "  curve_preferences: [CurveP256, CurveP384, CurveP521, X25519]\n", None),
        ("tls_server_config:\n  cert_file: somefile\n  key_file: server.key\n", "2:14: error: tls_server_config.cert_file"),
        ("tls_server_config:\n  cert_file: server.crt\n  key_file: somefile\n", "3:13: error: tls_server_config.key_file"),
        ("tls_server_config:\n  cert_file: server.crt\n  key_file: other.key\n", "error: tls_server_config."),
        ("tls_server_config:\n  cert_filse: server.crt\n", "2:3: error: tls_server_config.cert_filse: unknown key"),
        ("basic_auth_users:\n  john: doe\n", "2:9: error: basic_auth_users.john: expected a bcrypt hash"),
    ],
)
def test_check_config_reads_the_certificates(folder, text, error):
    certificate(folder, "other")
    file = write(folder, text)
    checked = subprocess.run([PROGRAM, "check-config", "--web", file], capture_output=True, text=True, check=False)
    assert checked.returncode == (1 if error else 0), checked
    assert (error or "valid") in (checked.stderr if error else checked.stdout), checked
    if error:
        refused = subprocess.run(
            [PROGRAM, "agent", f"--config.file={write(folder, 'clusterName: c1', 'c')}", f"--web.config.file={file}",
             "--web.listen-address=127.0.0.1:0"], capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert refused.returncode == 1 and "invalid web configuration file" in refused.stderr, refused
