"""Credentials that change on disk are used without a restart."""

import os
import subprocess
import time

from lib.agent import summary
from lib.fake import results
from lib.kube import CLUSTER, SCORES
from lib.wait import LONG, wait_until

ACCOUNT = f"api/v1/namespaces/{CLUSTER}/serviceaccounts"


def token(kube, name):
    """The token of a service account with the add-on's permissions."""
    kube.apply(ACCOUNT, name, {})
    rights = f"apis/rbac.authorization.k8s.io/v1/namespaces/{CLUSTER}/rolebindings"
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "dynamic-scoring"}
    kube.apply(rights, name, {"roleRef": role, "subjects": [{"kind": "ServiceAccount", "name": name}]})
    ask = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 3600}}
    return kube.call("POST", f"{ACCOUNT}/{name}/token", ask)["status"]["token"]


def test_token_rotation(kube, fake, start_agent, tmp_path):
    """The old token becomes invalid; a 401 makes the agent read the new one."""
    config = kube.own_kubeconfig("hub", tmp_path)
    text = config.read_text()
    config.write_text(text.replace("client-certificate: tls.crt, client-key: tls.key", "tokenFile: token"))
    (config.parent / "token").write_text(token(kube, "first"))
    kube.configure(summary("a", fake.on("/s", results({}, 1)), interval=1))
    agent = start_agent({}, *kube.flags(hub=config))
    kube.wait_items("a", {"a": 1})
    fresh = config.parent / "token.new"
    fresh.write_text(token(kube, "second"))
    fresh.rename(config.parent / "token")
    kube.delete(f"{ACCOUNT}/first")
    fake.on("/s", results({}, 2))
    kube.wait_items("a", {"a": 2})
    writer = "system:serviceaccount:cluster1:second"
    wait_until(lambda: kube.items("a") == {"a": 2}, f"{writer} writes")
    assert (config.parent / "token").read_text() not in agent.log()


def test_certificate_swapped_by_symlink(kube, fake, start_agent, tmp_path):
    """As the kubelet updates a Secret's mount: here from a certificate of another authority to a valid one."""
    kube.own_kubeconfig("hub", tmp_path)
    bad = kube.own_kubeconfig("nobody", tmp_path).parent
    ask = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=hub-agent"]
    subprocess.run([*ask, "-keyout", bad / "tls.key", "-out", bad / "tls.crt"], check=True, capture_output=True)
    link = tmp_path / "..data"
    link.symlink_to("nobody")
    kube.configure(summary("a", fake.on("/s", results({}, 1)), interval=1))
    agent = start_agent({}, *kube.flags(hub=link / "kubeconfig"))
    agent.wait_until(lambda: kube.reported("a").get("placementError"), "it is refused")
    (tmp_path / "new").symlink_to("hub")
    os.replace(tmp_path / "new", link)
    kube.wait_items("a", {"a": 1}, deadline=LONG)
    assert kube.find(SCORES.format(CLUSTER) + "/a")


def test_two_agents_never_fight(kube, fake, start_agent):
    """If two add-ons use the same object, the first keeps it; two replicas of one add-on only write when something
    changes."""
    one, two = fake.on("/one", results({}, 1)), fake.on("/two", results({}, 1))
    kube.configure(summary("a", one, interval=2))
    start_agent({}, *kube.flags())
    kube.wait_items("a", {"a": 1})
    start_agent({}, *kube.flags())
    other = start_agent(
        {},
        *kube.flags(managed=kube.kubeconfig())[:-1],
        "--addon-name=another",
        "--config.configmap=dynamic-scoring/other-config",
    )
    kube.apply(
        "api/v1/namespaces/dynamic-scoring/configmaps",
        "other-config",
        {"data": {"summaries": f'[{{"scoreName":"a","sourceType":"None","scoringEndpoint":"{two}","scoringInterval":1}}]'}},
    )
    other.wait_rounds("a", 5)
    assert other.metric("dynamic_scoring_placement_writes_total", operation="status", result="ok") is None
    versions, began = set(), time.monotonic()
    rounds = other.status("a")["rounds"]
    other.wait_until(
        lambda: versions.add(kube.object("a")["metadata"]["resourceVersion"])
        or other.status("a")["rounds"] >= rounds + 6,
        "six rounds have passed",
    )
    # Each of the two renews it once in half of validUntil, 3 s. A fight would write once in a round of each.
    assert len(versions) <= 1 + 2 * (1 + (time.monotonic() - began) / 3)
    assert kube.items("a") == {"a": 1}
