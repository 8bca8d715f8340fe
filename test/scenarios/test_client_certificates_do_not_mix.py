"""Two client certificates for one server, as of a hub that is its own managed cluster: each request comes with its own, also
over connections that resume a TLS session."""

import base64
import json
import ssl

import pytest
from lib.fake import plain, running_fake
from lib.wait import wait_until
from test_tls_is_verified import make_certificate

SCORES = "/apis/cluster.open-cluster-management.io/v1alpha1/namespaces/cluster1/addonplacementscores"
CONFIGURATION = "/api/v1/namespaces/ns/configmaps"


def encoded(file):
    return base64.b64encode(file.read_bytes()).decode()


def kubeconfig(folder, name, server, authority):
    """authority: None to verify nothing."""
    key, cert = folder / f"{name}.key", folder / f"{name}.pem"
    verified = {"insecure-skip-tls-verify": True} if not authority else {"certificate-authority-data": encoded(authority)}
    user = {"client-certificate-data": encoded(cert), "client-key-data": encoded(key)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server, **verified}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file = folder / f"{name}.kubeconfig"
    file.write_text(json.dumps(config))
    return file


@pytest.mark.parametrize("is_verified", [True, False])
def test_each_request_has_its_own(tmp_path, start_agent, is_verified):
    key, cert = make_certificate(tmp_path, "server", "subjectAltName=IP:127.0.0.1")
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, key)
    tls.verify_mode = ssl.CERT_REQUIRED
    for name in ("hub", "managed"):
        tls.load_verify_locations(make_certificate(tmp_path, name)[1])
    with running_fake(tls) as fake:
        for path in (SCORES, CONFIGURATION):
            fake.on(path, plain("no", 403, Connection="close"))
        start_agent(
            {},
            *(
                f"--{name}-kubeconfig={kubeconfig(tmp_path, name, fake.url, cert if is_verified else None)}"
                for name in ("hub", "managed")
            ),
            "--cluster-name=cluster1",
            "--addon-namespace=ns",
        )
        for path in (SCORES, CONFIGURATION):
            wait_until(lambda path=path: len(fake.requests(path)) >= 3, f"{path} is asked for again and again")
        assert {r.peer for r in fake.requests(SCORES)} == {"hub"}
        assert {r.peer for r in fake.requests(CONFIGURATION)} == {"managed"}
