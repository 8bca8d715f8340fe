"""Helm itself: renders our chart, and installs it on an API server of test/kube-apiserver."""

import json
import pathlib
import re
import tempfile

import yaml

from lib.kube import CLUSTER, NAMESPACE, go_program
from lib.process import ROOT, environment, run

CHART = ROOT / "charts" / "dynamic-scoring-framework"
CI_VALUES = sorted((CHART / "ci").glob("*-values.yaml"))
RELEASE = "dynamic-scoring-framework"
HUB_NAMESPACE = "open-cluster-management"
VARIABLES = {  # of the AddOnTemplate
    "CLUSTER_NAME": CLUSTER,
    "INSTALL_NAMESPACE": NAMESPACE,
    "HUB_KUBECONFIG": "/managed/hub-kubeconfig/kubeconfig",
    "OPENING_BRACES": "{{",
}


def helm(*words, kube=None):
    """Runs helm as the admin of an API server, if given: .returncode, .stdout, .stderr. Skips without a Go toolchain."""
    program = go_program("helm")
    as_admin = (f"--kubeconfig={kube.kubeconfig()}",) if kube else ()
    with tempfile.TemporaryDirectory() as folder:
        home = {f"HELM_{kind}_HOME": folder for kind in ("CACHE", "CONFIG", "DATA")}
        return run(program, *words, *as_admin, env=environment(**home))


def succeed(*words, kube=None):
    """Its output."""
    done = helm(*words, kube=kube)
    assert done.returncode == 0, done.stderr
    return done.stdout


def given(folder, values):
    """The option that passes values, as JSON, which is YAML."""
    file = pathlib.Path(folder) / "values.json"
    file.write_text(json.dumps(values))
    return f"--values={file}"


def render(*options, values=None, release=RELEASE, namespace=HUB_NAMESPACE):
    """The objects of the chart, without its CRDs. A document without contents is left out."""
    with tempfile.TemporaryDirectory() as folder:
        text = succeed("template", release, CHART, f"--namespace={namespace}", given(folder, values or {}), *options)
    return [one for one in yaml.safe_load_all(text) if one]


def install(kube, *options, values=None, release=RELEASE, namespace=HUB_NAMESPACE, chart=CHART):
    """As the documents say, also for an upgrade. Returns what helm prints, with the notes."""
    with tempfile.TemporaryDirectory() as folder:
        values = given(folder, values or {})
        where = (f"--namespace={namespace}", "--create-namespace")
        return succeed("upgrade", "--install", release, chart, *where, values, *options, kube=kube)


def uninstall(kube, *options, release=RELEASE, namespace=HUB_NAMESPACE):
    return succeed("uninstall", release, f"--namespace={namespace}", *options, kube=kube)


def on_clusters(objects):
    """The manifests of the AddOnTemplates as OCM sends them to a cluster: it replaces variables in the text."""
    found = [o["spec"]["agentSpec"]["workload"]["manifests"] for o in objects if o["kind"] == "AddOnTemplate"]
    text = re.sub(r"\{\{(.*?)\}\}", lambda m: VARIABLES[m[1]], json.dumps(found))
    return [m for manifests in json.loads(text) for m in manifests]


def named(objects, kind, name=None):
    """The one object of a kind, or of a kind and a name."""
    found = [o for o in objects if o["kind"] == kind and name in (None, o["metadata"]["name"])]
    assert len(found) == 1, (kind, name, [o["metadata"]["name"] for o in objects if o["kind"] == kind])
    return found[0]
