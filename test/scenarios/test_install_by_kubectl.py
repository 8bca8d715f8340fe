"""The plain manifests install the chart as charts/README.md says, on a hub that has never seen it, and again over
themselves."""

from lib import page
from lib.hub import HUB_NAMESPACE
from lib.kube import go_program, running_kube
from lib.process import ROOT, environment

OBJECTS = {  # some of each kind
    f"apis/apps/v1/namespaces/{HUB_NAMESPACE}/deployments/dynamic-scoring-framework-controller",
    f"apis/rbac.authorization.k8s.io/v1/namespaces/{HUB_NAMESPACE}/roles/dynamic-scoring-framework-controller",
    "apis/rbac.authorization.k8s.io/v1/clusterroles/dynamic-scoring-agent",
    "apis/addon.open-cluster-management.io/v1alpha1/clustermanagementaddons/dynamic-scoring-framework",
    f"apis/cluster.open-cluster-management.io/v1beta1/namespaces/{HUB_NAMESPACE}/placements/dynamic-scoring-placement",
    "apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/dynamic-scoring-framework-own-cluster",
}


def test_as_the_page_says(tmp_path):
    with running_kube("ocm") as hub:
        (tmp_path / "kubectl").symlink_to(go_program("kubectl"))
        env = environment(KUBECONFIG=str(hub.kubeconfig()), HOME=str(tmp_path))
        shell = page.Shell(ROOT, {**env, "PATH": f"{tmp_path}:{env['PATH']}"}, tmp_path / "state")
        steps = [commands for _, commands, _ in page.steps(ROOT / "charts/README.md") if "install.yaml" in commands]
        assert len(steps) == 1
        shell.run(steps[0])
        for one in OBJECTS:
            assert hub.find(one), one
        create, apply = steps[0].split("\n", 1)
        assert create.startswith("kubectl create namespace")
        again = shell.run(apply)
        assert "error" not in again.lower()
