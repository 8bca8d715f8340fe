"""Remote write by TLS, IPv6 and a proxy: what arrives, and what the error says where nothing may."""

import json
import ssl
import subprocess

from lib import remote
from test_tls_is_verified import make_certificate

HOSTS = {"here": "IP:127.0.0.1", "other": "DNS:hub.example", "me": "DNS:me", "old": "IP:127.0.0.1"}


def expire(key, cert):
    """Replaces the certificate by one that ended yesterday."""
    request = cert.with_suffix(".csr")
    subprocess.run(
        ["openssl", "x509", "-x509toreq", "-in", cert, "-signkey", key, "-copy_extensions", "copy", "-out", request],
        check=True,
        capture_output=True,
    )
    subprocess.run(
        ["faketime", "-2 days", "openssl", "x509", "-req", "-in", request, "-signkey", key, "-copy_extensions", "copy"]
        + ["-days", "1", "-out", cert],
        check=True,
        capture_output=True,
    )


def tls_receiver(pair, client=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair[1], pair[0])
    if client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(client[1])
    return remote.Receiver(context=context)


def ipv6():
    try:
        return remote.Receiver(host="::1")
    except OSError as error:
        print(f"no IPv6 here, not tried: {error}")
        return None


def shown(agent, name):
    return next(e for e in json.loads(agent.page("/api/v1/status"))["remoteWrite"] if e["name"] == name)


def test_where_samples_arrive_and_where_they_must_not(tmp_path):
    here, other, me, old = (
        make_certificate(tmp_path, name, f"subjectAltName={host}")
        for name, host in HOSTS.items()
    )
    expire(*old)
    plain, v6 = remote.Receiver(), ipv6()
    tls_to_http = f"https://127.0.0.1:{plain.port}/w"
    trusted, named = tls_receiver(here), tls_receiver(other)
    mutual, expired = tls_receiver(here, client=me), tls_receiver(old)
    proxy = remote.Receiver()
    ca = {name: {"ca_file": str(cert)} for name, (_, cert) in {"here": here, "other": other, "old": old}.items()}
    mine = {"cert_file": str(me[1]), "key_file": str(me[0])}

    def to(name, receiver, tls=None, **more):
        return remote.endpoint(receiver, name=name, **({"tls_config": tls} if tls else {}), **more)

    good = {
        "own-ca": (to("own-ca", trusted, ca["here"]), trusted),
        "server-name": (to("server-name", named, {**ca["other"], "server_name": "hub.example"}), named),
        "client-certificate": (to("client-certificate", mutual, {**ca["here"], **mine}), mutual),
        "proxy": (to("proxy", plain, proxy_url=proxy.url(""), url="http://hub.invalid/api/v1/write"), proxy),
    }
    if v6:
        good["ipv6"] = (to("ipv6", v6), v6)
    bad = {
        "untrusted": (to("untrusted", trusted), "certificate"),
        "wrong-host": (to("wrong-host", named, ca["other"]), "127.0.0.1"),
        "no-client-certificate": (to("no-client-certificate", mutual, ca["here"]), "certificate"),
        "expired": (to("expired", expired, ca["old"]), "expired"),
        "http-port": (to("http-port", plain, ca["here"], url=tls_to_http), "if it is an http port, use http://"),
    }
    with remote.Scoring(t=remote.counted(2)) as scoring:
        listed = [entry for entry, _ in (*good.values(), *bad.values())]
        with remote.Agent(tmp_path / "a", scoring, listed, storage=None) as agent:
            for receiver in {id(r): r for _, r in good.values()}.values():
                receiver.wait(2)
            for name, (_, words) in bad.items():
                remote.wait_for(f"the error of {name}", lambda name=name: shown(agent, name)["error"])
                assert words in shown(agent, name)["error"], name
                assert shown(agent, name)["samplesSent"] == 0, name
            assert {a.path for a in proxy.arrivals} == {"http://hub.invalid/api/v1/write"}
    assert not plain.arrivals and not expired.arrivals
    for receiver in {id(r): r for r in (plain, trusted, named, mutual, expired, proxy, v6) if r}.values():
        receiver.__exit__(None)
