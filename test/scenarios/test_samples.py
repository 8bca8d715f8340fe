"""The samples of the chart, and the files in charts/samples, are taken by a real API server and run what they name."""

import json
import re
import urllib.request

import pytest
import yaml

from lib.helm import HUB_NAMESPACE, on_clusters, render
from lib.hub import SCORERS, Hub
from lib.kube import CLUSTER
from lib.process import ROOT
from lib.scoring_api import start_scorer, wait_healthy
from lib.wait import DEADLINE

SAMPLES = ROOT / "charts" / "samples"
FILES = sorted([*SAMPLES.glob("mydynamicscorer-*.yaml"), *SAMPLES.glob("*/dynamicscorer.yaml")])
WORKS = sorted(SAMPLES.glob("*/manifestwork.yaml"))
MODELS = list(yaml.safe_load((ROOT / "charts/dynamic-scoring-framework/files/samples.yaml").read_text()))


def substituted(file):
    text = file.read_text().replace("NODE_IP", "172.18.0.3").replace("${EXTERNAL_SCORER_IP}", "172.18.0.9")
    return text.replace("${CLUSTER_NAME}", CLUSTER)


def apply(kube, folder, text, *flags):
    file = folder / "object.yaml"
    file.write_text(text)
    return kube.kubectl("apply", "-f", file, *flags)


@pytest.fixture(autouse=True)
def nothing_of_former_tests(request):
    if "api_server" in request.fixturenames:
        Hub(request.getfixturevalue("api_server")).drop(SCORERS)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_kubectl_applies_the_scorers(api_server, tmp_path, file):
    done = apply(api_server, tmp_path, substituted(file), f"--namespace={HUB_NAMESPACE}")
    assert done.returncode == 0 and "created" in done.stdout, done.stderr


def test_an_address_that_was_not_filled_in_is_named(api_server, tmp_path):
    """The guide applies the file as it is, once, before it replaces the variable."""
    text = (SAMPLES / "mydynamicscorer-external-llm.yaml").read_text()
    done = apply(api_server, tmp_path, text, f"--namespace={HUB_NAMESPACE}")
    assert done.returncode != 0 and "spec.configURL" in done.stderr and "${EXTERNAL_SCORER_IP}" in done.stderr


@pytest.mark.parametrize("file", WORKS, ids=lambda f: f.parent.name)
def test_kubectl_applies_the_works(api_server, tmp_path, file):
    done = apply(api_server, tmp_path, substituted(file))
    assert done.returncode == 0, done.stderr
    work = yaml.safe_load(substituted(file))
    assert work["metadata"]["name"] == f"{file.parent.name}-deployment"
    kinds = [m["kind"] for m in work["spec"]["workload"]["manifests"]]
    assert kinds == ["Namespace", "Deployment", "Service"]


def test_the_plain_manifest_is_that_of_the_work(api_server, tmp_path):
    """The path that the framework's documents apply on a cluster."""
    file = SAMPLES / "ai-workload-scorer/manifests/ai-workload-scorer.yaml"
    work = yaml.safe_load((SAMPLES / "ai-workload-scorer/manifestwork.yaml").read_text())
    assert list(yaml.safe_load_all(file.read_text())) == work["spec"]["workload"]["manifests"][1:]
    api_server.kubectl("create", "namespace", "dynamic-scoring")  # which may be there
    done = apply(api_server, tmp_path, file.read_text())
    assert done.returncode == 0 and done.stdout.count("created") == 2, done.stderr
    for manifest in work["spec"]["workload"]["manifests"][1:]:
        assert apply(api_server, tmp_path, yaml.safe_dump(manifest), "--dry-run=server").returncode == 0


def objects_of(model):
    objects = render(values={"samples": {model: {"enabled": True}}})
    found = [m for m in on_clusters(objects) if m["metadata"].get("labels", {}).get("app.kubernetes.io/component") == "sample"]
    return [o for o in objects if o["kind"] == "DynamicScorer"], {m["kind"]: m for m in found}


@pytest.mark.parametrize("model", MODELS)
def test_the_chart_says_what_the_model_says(api_server, tmp_path, model):
    scorers, manifests = objects_of(model)
    deployment, service = manifests["Deployment"], manifests["Service"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["args"][:2] == ["scorer", model]
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
    process = start_scorer(tmp_path, *container["args"][2:], model=model)
    try:
        wait_healthy(process)
        for scorer in scorers:
            done = apply(api_server, tmp_path, yaml.safe_dump(scorer), "--dry-run=server")
            assert done.returncode == 0, done.stderr
            spec = scorer["spec"]
            host = f"http://{service['metadata']['name']}.{service['metadata']['namespace']}.svc:8000"
            assert spec["scoring"].pop("host") == host and spec["healthCheck"] == "Agents"
            path = spec["scoring"]["path"].removesuffix("/scoring") + "/config"
            with urllib.request.urlopen(process.url + path, timeout=DEADLINE) as answer:
                config = json.load(answer)
            same = {key: spec[key] for key in ("description", "source", "scoring")}
            assert {"name": scorer["metadata"]["name"], **same} == config
        process.end()
    finally:
        process.kill()


def test_a_second_release_has_names_of_its_own():
    values = {"samples": {model: {"enabled": True} for model in MODELS}}
    names = [
        {o["metadata"]["name"] for o in render(values=values, release=release) if o["kind"] == "DynamicScorer"}
        for release in ("dynamic-scoring-framework", "other")
    ]
    assert not names[0] & names[1] and all(re.match("other-", name) for name in names[1])
