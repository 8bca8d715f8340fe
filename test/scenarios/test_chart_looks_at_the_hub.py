"""What helm finds on the hub: its notes warn of CRDs of another version, and a Deployment that cannot be changed is an error that
says what to do."""

import pytest

from lib import helm
from lib.hub import HUB_NAMESPACE

CRDS = "apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCORERS = "dynamicscorers.dynamic-scoring.open-cluster-management.io"
SCHEMA = "dynamic-scoring.open-cluster-management.io/schema"
WARNING = f"WARNING: the CRD {SCORERS} on this cluster is older than this chart's, or another."


@pytest.fixture
def with_chart(kube):
    yield kube
    helm.uninstall(kube)


def test_notes_warn_of_older_crds(with_chart):
    kube = with_chart
    assert "WARNING" not in helm.install(kube)
    patch = {"metadata": {"annotations": {SCHEMA: None}}}
    kube.call("PATCH", f"{CRDS}/{SCORERS}", patch, content_type="application/merge-patch+json")
    notes = helm.install(kube)
    assert WARNING in notes and notes.count("WARNING") == 1, notes

    shown = helm.succeed("show", "crds", helm.CHART)
    (kube.folder / "crds.yaml").write_text(shown)
    done = kube.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(kube.folder / "crds.yaml"))
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in helm.install(kube)


def test_notes_tell_what_is_missing(with_chart):
    """What the values allow, but leaves somebody without an alert or a secret without protection."""
    clear = {"web": {"kubernetesAuth": {"enabled": True}}}
    basic = {"web": {"configSecret": "web"}, "serviceMonitor": {"enabled": True}}
    rules = {"enabled": True}
    cases = [
        ({}, "There are no alerts. Set prometheusRule.enabled"),
        ({"prometheusRule": rules}, "Nothing watches the agents."),
        ({"prometheusRule": {**rules, "hub": ["agent"], "clusters": ["agent"]}}, "they will arrive twice"),
        ({"controller": clear}, "WARNING: controller.web.kubernetesAuth without controller.web.tls: tokens travel in clear text."),
        ({"agent": basic}, "If the Secret web has basic_auth_users, set agent.serviceMonitor.endpoint.basicAuth."),
        ({"optimizer": {"enabled": True}}, "Without authentication only port-forward reaches it:"),
        (
            {"optimizer": {"enabled": True, "writeNamespaces": [], "tokenSecret": {"name": "assistants"}}},
            "WARNING: optimizer.tokenSecret without optimizer.web.tls: the token travels in clear text.",
        ),
    ]
    notes = [helm.install(with_chart, values=values) for values, _ in cases]
    for n, (_, text) in enumerate(cases):
        assert text in notes[n]
        assert sum(text in other for other in notes) == (5 if n == 0 else 1)


def test_a_deployment_of_others_is_named(kube):
    """The reference's has the same name, but another selector."""
    path = f"apis/apps/v1/namespaces/{HUB_NAMESPACE}/deployments"
    name = f"{helm.RELEASE}-controller"
    labels = {"control-plane": "controller-manager"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "manager", "image": "x"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": pod}
    kube.apply(path, name, {"spec": spec})
    done = helm.helm("upgrade", "--install", helm.RELEASE, helm.CHART, f"--namespace={HUB_NAMESPACE}", kube=kube)
    kube.delete(f"{path}/{name}")
    assert done.returncode, done.stdout
    assert f"kubectl -n {HUB_NAMESPACE} delete deployment {name}, then run helm again" in done.stderr
