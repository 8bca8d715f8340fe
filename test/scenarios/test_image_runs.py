"""The image's program runs as its user on a read-only root, resolves names as in a pod, trusts public certificates, and
needs little memory."""

import contextlib
import os
import pathlib
import socket
import ssl
import struct
import subprocess
import threading

import pytest

from lib import image
from lib.agent import summary
from lib.fake import results, running_fake
from lib.process import environment, missing
from lib.wait import DEADLINE

NAMESERVER = "127.11.0.53"
RESOLV_CONF = f"nameserver {NAMESERVER}\nsearch shop.svc.cluster.local svc.cluster.local\noptions ndots:5\n"
ANONYMOUS_KB, ANONYMOUS_TLS_KB = 2000, 3500
TEN = range(10)


@pytest.fixture(name="root")
def native_root(tmp_path):
    image.need_image()
    if os.geteuid() != 0:
        missing("only root can change to another root directory")
    return image.copy_of(image.NATIVE, tmp_path)


@contextlib.contextmanager
def name_server(names):
    """names: of A records, all 127.0.0.1. Yields the list of names asked for."""
    asked = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind((NAMESERVER, 53))
        s.settimeout(0.1)
        stopping = threading.Event()

        def serve():
            while not stopping.is_set():
                with contextlib.suppress(TimeoutError):
                    query, peer = s.recvfrom(512)
                    end = query.index(b"\0", 12)
                    labels, at = [], 12
                    while at < end:
                        labels.append(query[at + 1 : at + 1 + query[at]].decode())
                        at += 1 + query[at]
                    name, kind = ".".join(labels), struct.unpack(">H", query[end + 1 : end + 3])[0]
                    asked.append(name)
                    found = name in names and kind == 1
                    flags = 0x8180 if name in names else 0x8183  # NOERROR or NXDOMAIN
                    header = query[:2] + struct.pack(">HHHHH", flags, 1, found, 0, 0)
                    answer = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 5, 4) + bytes((127, 0, 0, 1)) if found else b""
                    s.sendto(header + query[12 : end + 5] + answer, peer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield asked
        finally:
            stopping.set()
            thread.join()


def ten_scorers(fake, url):
    for i in TEN:
        fake.on(f"/s{i}", results({"node": "n1"}, i))
    return {"summaries": [summary(f"s{i}", f"{url}/s{i}", interval=600) for i in TEN]}


def anonymous_kb(agent):
    """What the kernel cannot take back: code and constants are pages of files, which it can."""
    rollup = pathlib.Path(f"/proc/{agent.process.popen.pid}/smaps_rollup").read_text()
    return int(rollup.split("Anonymous:")[1].split()[0])


def wait_small(agent, limit):
    agent.wait_all()
    # The agent returns memory ten seconds after its start and each minute from then on.
    agent.wait_until(lambda: anonymous_kb(agent) <= limit, f"the agent has at most {limit} kB of its own", DEADLINE + 70)


def test_names_are_resolved_with_the_search_domains(root, fake):
    (root / "etc/resolv.conf").write_text(RESOLV_CONF)
    (root / "etc/hosts").write_text("127.0.0.1 localhost from-hosts\n")
    port = fake.url.rsplit(":", 1)[1]
    fake.on("/s", results({}, 1))
    hosts = {"short": "scorer", "namespaced": "api.models.svc", "hosts": "from-hosts", "missing": "nowhere"}
    config = {"summaries": [summary(name, f"http://{host}:{port}/s") for name, host in hosts.items()]}
    known = {"scorer.shop.svc.cluster.local", "api.models.svc.cluster.local.svc.cluster.local", "api.models.svc"}
    with name_server(known) as asked, image.running_image(root, config, environment()) as agent:
        status = agent.wait_all()
        assert {name for name, s in status.items() if s["error"]} == {"missing"}, status
        assert status["missing"]["error"]["class"] == "dns"
        assert "nowhere.shop.svc.cluster.local" in asked


def test_memory_when_idle(root, fake):
    with image.running_image(root, ten_scorers(fake, fake.url), environment()) as agent:
        wait_small(agent, ANONYMOUS_KB)


def test_memory_with_tls_and_all_certificates(root, tmp_path):
    key, cert = tmp_path / "key", tmp_path / "cert"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj"]
        + ["/CN=here", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True,
        capture_output=True,
    )
    bundle = root / "etc/ssl/certs/ca-certificates.crt"
    assert bundle.read_text().count("BEGIN CERTIFICATE") > 100
    bundle.write_text(bundle.read_text() + cert.read_text())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(cert, key)
    with running_fake(context) as fake, image.running_image(root, ten_scorers(fake, fake.url), environment()) as agent:
        assert not any(s["error"] for s in agent.wait_all().values())
        wait_small(agent, ANONYMOUS_TLS_KB)


def test_root_is_read_only_and_the_user_unprivileged(root, fake):
    with image.running_image(root, ten_scorers(fake, fake.url), environment()) as agent:
        status = pathlib.Path(f"/proc/{agent.process.popen.pid}/status").read_text()
        assert f"Uid:\t{image.USER}\t{image.USER}\t{image.USER}\t{image.USER}" in status and "CapEff:\t0000000000000000" in status
        mounts = pathlib.Path(f"/proc/{agent.process.popen.pid}/mountinfo").read_text()
        assert f" {root} ro," in mounts or " / ro," in mounts


def test_names_of_the_reference(root):
    for name in ("manager", "dynamic-scoring-addon"):
        done = subprocess.run(image.command(root, f"/{name}", "--version"), capture_output=True, text=True, check=True)
        assert done.stdout.startswith("dynamic-scoring "), done
