"""Helm's view of the chart, for the checks beside this file. Helm is built by test/go-program."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import yaml

TOP = pathlib.Path(__file__).resolve().parents[3]
CHART = TOP / "charts" / "dynamic-scoring-framework"
CI = {f.name.removesuffix("-values.yaml"): yaml.safe_load(f.read_text()) for f in CHART.glob("ci/*-values.yaml")}
RELEASE = "dynamic-scoring-framework"

problems = []


def check(ok, what):
    if not ok:
        problems.append(what)


def report():
    """Prints the problems and ends the program."""
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)


def build_helm():
    done = subprocess.run([TOP / "test" / "go-program", "helm"], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout.strip()


HELM = build_helm()
# A run of it ends before its garbage matters, and collecting it is a third of what it costs.
HELM_ENV = {**os.environ, "GOGC": "off"}


def helm(*words, values=None):
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(values, file)
        file.flush()
        given = [] if values is None else ["--values", file.name]
        return subprocess.run([HELM, *words, *given], env=HELM_ENV, capture_output=True, text=True)


def template(values=None, *words, release=RELEASE, namespace="open-cluster-management"):
    """The rendered objects."""
    done = helm("template", release, CHART, "--namespace", namespace, *words, values=values)
    if done.returncode:
        problems.append(f"values {values}: {done.stderr}")
        return []
    return [o for o in yaml.safe_load_all(done.stdout) if o]


def notes(values=None):
    """NOTES.txt, its lines joined: only an installation prints it, and so a copy of the chart renders it as an object."""
    with tempfile.TemporaryDirectory() as folder:
        copied = pathlib.Path(folder) / "chart"
        shutil.copytree(CHART, copied)
        (copied / "templates/notes.yaml").write_text('notes: {{ include (print $.Template.BasePath "/NOTES.txt") . | toJson }}')
        done = helm("template", RELEASE, copied, "--namespace=hub", "--show-only=templates/notes.yaml", values=values)
    check(done.returncode == 0, f"NOTES with {values}: {done.stderr}")
    return " ".join(yaml.safe_load(done.stdout)["notes"].split()) if done.returncode == 0 else ""


def on_clusters(objects):
    """The objects that the AddOnTemplates have."""
    return [m for o in objects if o["kind"] == "AddOnTemplate" for m in o["spec"]["agentSpec"]["workload"]["manifests"]]


def identity(o):
    return o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]


def find(objects, kind):
    return next(o for o in objects if o["kind"] == kind)


def walk(node, key=None):
    """(key, scalar) of everything in an object; a list's items have the list's key."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield from walk(value, name)
    elif isinstance(node, list):
        for value in node:
            yield from walk(value, key)
    else:
        yield key, node
