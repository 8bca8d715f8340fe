"""Where klusterlets give add-ons tokens for the hub rather than certificates, the chart on two clusters leads to scores as well, agents
write and read those of their own cluster only, a replaced token is taken up without a failed write, and an uninstall leaves
nothing."""

import base64

import pytest

import test_chart_on_two_clusters as two
from lib import ocm
from lib.client import call
from lib.exposition import Samples
from lib.kube import NAMESPACE, SCORES
from lib.wait import LONG, wait_until
from test_chart_on_two_clusters import ADDON, pods, source_port  # noqa: F401, fixtures among them

ADDONS = "apis/addon.open-cluster-management.io"
ACCOUNT = f"api/v1/namespaces/cluster1/serviceaccounts/{ADDON}-agent"
SECRETS = "api/v1/namespaces/cluster1/secrets"
TOKENS = ("first", "second")  # the names of Secrets that they are bound to
WRITES = "dynamic_scoring_placement_writes_total"
pytestmark = pytest.mark.skipif(ocm.version() < (1, 2), reason="left out: klusterlets of this release give no tokens")


@pytest.fixture(scope="module")
def fleet():
    with two.installed(ocm.TOKENS, ocm.addon_webhook) as fleet:
        yield fleet


def config_names(addon):
    return [reference["desiredConfig"]["name"] for reference in addon["status"]["configReferences"]]


def test_add_ons_have_two_versions(fleet):
    """As OCM installs them: v1alpha1, which is stored, and v1beta1, into which its webhook converts."""
    old, new = (fleet.hub.call("GET", f"{ADDONS}/{version}/clustermanagementaddons/{ADDON}") for version in ("v1alpha1", "v1beta1"))
    wanted = [config["defaultConfig"]["name"] for config in old["spec"]["supportedConfigs"]]
    assert len(wanted) == 2 and [config["name"] for config in new["spec"]["defaultConfigs"]] == wanted
    assert new["spec"]["installStrategy"]["placements"][0]["name"] == old["spec"]["installStrategy"]["placements"][0]["name"]
    for cluster in fleet.clusters:
        versions = (f"{ADDONS}/{version}/namespaces/{cluster}/managedclusteraddons/{ADDON}" for version in ("v1alpha1", "v1beta1"))
        old, new = (fleet.hub.call("GET", path) for path in versions)
        assert old["metadata"]["uid"] == new["metadata"]["uid"]
        assert config_names(old) == config_names(new) and len(config_names(new)) == 2


def test_add_on_is_registered(fleet):
    """A ServiceAccount in the cluster's namespace, a RoleBinding for it alone, a token on the cluster."""
    for cluster in fleet.clusters:
        wait_until(lambda c=cluster: two.bound(fleet, c) == {two.token_user(c)}, f"the agent of {cluster} alone is bound", LONG)
        secret = fleet.wait_registered(cluster, ADDON)
        assert set(secret["data"]) == {"cluster-name", "kubeconfig", "token"}
        assert secret["metadata"]["namespace"] == NAMESPACE


test_clusters_score = two.test_clusters_score
test_agents_write_their_own_scores_only = two.test_agents_write_their_own_scores_only
test_agents_use_additional_rights_in_their_own_cluster_only = two.test_agents_use_additional_rights_in_their_own_cluster_only
test_agents_read_nothing_else = two.test_agents_read_nothing_else


@pytest.fixture(name="no_secrets_left")
def remove_secrets(fleet):
    yield
    for name in TOKENS:
        fleet.hub.delete(f"{SECRETS}/{name}")


def make_token(hub, name):
    """A token of the agent of cluster1 that is good as long as a Secret of that name is there."""
    secret = hub.apply(SECRETS, name, {})
    bound_to = {"apiVersion": "v1", "kind": "Secret", "name": name, "uid": secret["metadata"]["uid"]}
    return hub.call("POST", f"{ACCOUNT}/token", {"spec": {"boundObjectRef": bound_to}})["status"]["token"]


def replace_token(fleet, token):
    """In the Secret on the cluster, as the registration agent does."""
    secret = fleet.wait_registered("cluster1", ADDON)["metadata"]
    path = f"api/v1/namespaces/{secret['namespace']}/secrets/{secret['name']}"
    data = {"data": {"token": base64.b64encode(token.encode()).decode()}}
    fleet.cluster("cluster1").call("PATCH", path, data, "application/merge-patch+json")


def write_again(fleet):
    """Makes the agent write a score, which somebody has deleted, once more."""
    score = f"{SCORES.format('cluster1')}/sample-my-score"
    uid = fleet.hub.call("GET", score)["metadata"]["uid"]
    fleet.hub.delete(score)

    def is_new():
        found = fleet.hub.find(score)
        return found and found["metadata"]["uid"] != uid and two.items(fleet, "cluster1") == {"cluster1;n1": 42}

    wait_until(is_new, "the score is written again", LONG)


def writes_by_result(agent):
    page = Samples(call("GET", agent.url("http-metrics") + "/metrics").text)
    return {labels["result"] for labels, count in page.all(WRITES) if count}


def test_replaced_token_is_taken_up(fleet, pods, source_port, no_secrets_left, tmp_path):
    """The old one is revoked at once."""
    first, second = (make_token(fleet.hub, name) for name in TOKENS)
    replace_token(fleet, first)
    pods.cluster1.process.end()
    pods.cluster1 = pods.stack.enter_context(two.start_agent(fleet, "cluster1", **{two.API: two.HERE, two.PROMETHEUS: two.HERE}))
    old = two.credentials(fleet, "cluster1", tmp_path)
    assert (tmp_path / "token").read_text() == first
    write_again(fleet)

    replace_token(fleet, second)
    pods.cluster1.refresh()
    fleet.hub.delete(f"{SECRETS}/first")
    wait_until(lambda: "Unauthorized" in two.get(old, "addonplacementscores --namespace=cluster1").stderr, "the old token is revoked", LONG)
    write_again(fleet)
    # A write of the status may meet the deletion.
    assert writes_by_result(pods.cluster1) <= {"ok", "not_found"}


def test_uninstall_leaves_what_users_made(fleet, pods, source_port):
    """Nor anything of the tokens."""
    two.uninstall(fleet, pods)
