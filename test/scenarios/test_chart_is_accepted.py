"""A real API server accepts every object that the chart renders with each ci/*-values.yaml, with all its fields: those of the hub,
and those of the AddOnTemplates with OCM's variables replaced. Their pods keep to the restricted Pod Security Standard."""

import pytest
import yaml

from lib import helm
from lib.kube import Refused, go_program
from lib.process import ROOT, run

RESTRICTED = "restricted"


@pytest.fixture(scope="module", params=helm.CI_VALUES, ids=lambda file: file.name.removesuffix("-values.yaml"))
def rendered(request):
    return helm.render(values=yaml.safe_load(request.param.read_text()) or {})


def dry_run(kube, objects):
    """kubectl apply; the API server refuses unknown fields."""
    options = ("--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", "-")
    words = (f"--kubeconfig={kube.kubeconfig()}", f"--cache-dir={kube.folder / 'kubectl'}", "apply", *options)
    done = run(go_program("kubectl"), *words, input=yaml.safe_dump_all(objects))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("(server dry run)") == len(objects), done.stdout


def test_the_hub_accepts_all(kube, rendered):
    dry_run(kube, rendered)


def test_clusters_accept_all(kube, rendered):
    if manifests := helm.on_clusters(rendered):  # none without an agent
        dry_run(kube, manifests)


def test_the_hub_accepts_the_optimizers_manifest(kube):
    """And the documents' way to its pod finds it: by namespace and label."""
    objects = list(yaml.safe_load_all((ROOT / "charts/samples/dynamic-scoring-framework-mcp/deployment.yaml").read_text()))
    dry_run(kube, objects)
    deployment = helm.named(objects, "Deployment", "dynamic-scoring-framework-mcp")
    template = deployment["spec"]["template"]
    assert deployment["metadata"]["namespace"] == "dynamic-scoring"
    assert template["metadata"]["labels"]["app"] == "dynamic-scoring-framework-mcp"
    assert template["spec"]["serviceAccountName"] == "dynamic-scoring-framework-mcp-sa"
    assert "--web.listen-address=127.0.0.1:8338" in template["spec"]["containers"][0]["args"]


def test_pods_are_restricted(kube, rendered):
    """Where a namespace enforces the standard, the pods are created, unless values take their security context away."""
    label = {"pod-security.kubernetes.io/enforce": RESTRICTED}
    kube.apply("api/v1/namespaces", RESTRICTED, {"metadata": {"name": RESTRICTED, "labels": label}})
    for o in rendered + helm.on_clusters(rendered):
        spec = o["spec"] if o["kind"] == "Pod" else o["kind"] == "Deployment" and o["spec"]["template"]["spec"]
        if spec and spec.get("securityContext"):
            pod = {"metadata": {"name": o["metadata"]["name"]}, "spec": spec}
            kube.call("POST", f"api/v1/namespaces/{RESTRICTED}/pods?dryRun=All", pod)
    with pytest.raises(Refused, match="violates PodSecurity"):
        bare = {"metadata": {"name": "bare"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
        kube.call("POST", f"api/v1/namespaces/{RESTRICTED}/pods?dryRun=All", bare)
