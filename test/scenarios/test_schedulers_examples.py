"""The examples for Argo CD and Kueue: a real API server with the CRDs of both and of Open Cluster Management accepts them with all
their fields, and each part names the one that it depends on."""

import pytest
import yaml

from lib.helm import CHART
from lib.kube import go_crds, go_program, running_kube
from lib.process import run
from lib.wait import DEADLINE

SAMPLES = CHART.parent / "samples"
NAMESPACES = {"argocd": "argocd", "kueue": "kueue-system"}
FILES = {"argocd": SAMPLES / "argocd" / "applicationset.yaml", "kueue": SAMPLES / "kueue" / "multikueue.yaml"}


@pytest.fixture(scope="module", name="server")
def server_with_crds():
    crds = [go_crds(name) for name in FILES]
    with running_kube("ocm") as kube:
        for folder in crds:
            done = kube.kubectl("apply", "--server-side", "-f", folder)
            assert done.returncode == 0, done.stderr
        done = kube.kubectl("wait", "--for=condition=Established", f"--timeout={DEADLINE}s", "crd", "--all")
        assert done.returncode == 0, done.stderr
        for namespace in NAMESPACES.values():
            kube.call("POST", "api/v1/namespaces", {"metadata": {"name": namespace}})
        yield kube


@pytest.mark.parametrize("name", FILES)
def test_a_real_api_server_accepts_them(server, name):
    words = (f"--kubeconfig={server.kubeconfig()}", f"--cache-dir={server.folder / 'kubectl'}", "apply", "--server-side")
    done = run(go_program("kubectl"), *words, "--dry-run=server", "--validate=strict", "-f", FILES[name])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("(server dry run)") == len(list(yaml.safe_load_all(FILES[name].read_text())))


@pytest.mark.parametrize("name", FILES)
def test_placements_follow_the_samples_score(name):
    objects = {(o["kind"], o["metadata"]["name"]): o for o in yaml.safe_load_all(FILES[name].read_text())}
    placement = next(o for (kind, _), o in objects.items() if kind == "Placement")
    coordinate = placement["spec"]["prioritizerPolicy"]["configurations"][0]["scoreCoordinate"]
    assert coordinate["addOn"]["resourceName"] == "sample-my-score" and coordinate["addOn"]["scoreName"]
    if name == "argocd":
        generator = objects["ApplicationSet", "shop"]["spec"]["generators"][0]["clusterDecisionResource"]
        labels = generator["labelSelector"]["matchLabels"]
        assert labels == {"cluster.open-cluster-management.io/placement": placement["metadata"]["name"]}
        config = objects["ConfigMap", generator["configMapRef"]]["data"]
        assert (config["kind"], config["statusListKey"], config["matchKey"]) == ("placementdecisions", "decisions", "clusterName")
    else:
        strategy = objects["ClusterQueue", "scored"]["spec"]["admissionChecksStrategy"]
        checks = [check["name"] for check in strategy["admissionChecks"]]
        named = [objects["AdmissionCheck", check]["spec"]["parameters"] for check in checks]
        # Open Cluster Management's controller names the MultiKueueConfig as its AdmissionCheck and the Placement are named.
        assert checks[0] == placement["metadata"]["name"] and [(p["kind"], p["name"]) for p in named] == [
            (kind, placement["metadata"]["name"]) for kind in ("Placement", "MultiKueueConfig")
        ]
