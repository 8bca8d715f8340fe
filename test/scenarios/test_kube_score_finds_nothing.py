"""kube-score finds nothing in what the chart renders, on the hub and on clusters, but what stands here with its reason. A reason whose
finding is gone fails, too."""

import json

import pytest
import yaml

from lib.helm import CI_VALUES, on_clusters, render
from lib.kube import go_program
from lib.process import run

KUBERNETES = "v1.30"  # the oldest that the README promises; kube-score has no rules for newer ones
GOOD = 10  # of 10; 5 is a warning, 7 almost good
ALL = None
ASKED_FOR = ("own", "reference")  # their values switch probes off, or name an image `latest`

ONE = "one replica by default: a second one only waits to take over; the value `replicas` is for that"
# {(check, names of workloads): why it stays}
REASONS = {
    ("pod-networkpolicy", ALL): "off by default, as each hub and cluster has addresses of its own; `networkPolicy.enabled` is complete",
    ("container-image-pull-policy", ALL): "a tag is a version and never moves, and kind loads images that no registry has",
    ("container-resources", ALL): "a CPU limit throttles a program that has work for a moment; requests and memory limits are set",
    ("container-ephemeral-storage-request-and-limit", ALL): "root file systems are read-only, and volumes have a sizeLimit",
    ("deployment-has-host-podantiaffinity", ALL): "Kubernetes spreads replicas by itself; a value for affinity is there",
    ("container-security-context-user-group-id", ALL): (
        "user and group are the image's, which is not root, so that OpenShift can choose: one template is for all clusters of a fleet"
    ),
    ("deployment-replicas", ALL): ONE,
    ("deployment-strategy", ALL): "with one replica, or plans in memory, the new pod comes when the old one has gone",
    ("pod-probes-identical", ("scorer",)): "a scoring API has no state in which it lives and is not ready",
    ("service-type", ("sample-scorer",)): "a NodePort is only there where a value asks for it",
}
# What `container-resources` says of a container that has everything else.
ONLY_CPU_LIMIT = {"CPU limit is not set"}


def reason_of(check, name):
    for key in REASONS:
        if key[0] == check and (key[1] is ALL or any(part in name for part in key[1])):
            return key
    return None


def findings(objects, folder):
    """[(check, name, what it says)]"""
    file = folder / "objects.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    done = run(go_program("kube-score"), "score", "--output-format=json", f"--kubernetes-version={KUBERNETES}", file)
    assert done.returncode in (0, 1), done.stderr
    scored = json.loads(done.stdout)
    assert len(scored) >= sum(o["kind"] in ("Deployment", "Service", "Pod") for o in objects) > 0
    return [
        (check["check"]["id"], scored_object["object_name"].split("/")[-1], {c["summary"] for c in check["comments"] or []})
        for scored_object in scored
        for check in scored_object["checks"]
        if not check["skipped"] and check["grade"] < GOOD
    ]


@pytest.fixture(scope="module", name="found")
def of_all_values(tmp_path_factory):
    """Of the files in the chart's folder ci, for the hub and for clusters."""
    found = []
    files = [f for f in CI_VALUES if f.name.removesuffix("-values.yaml") not in ASKED_FOR]
    assert len(files) == len(CI_VALUES) - len(ASKED_FOR)
    for file in files:
        objects = render(values=yaml.safe_load(file.read_text()))
        for where in (objects, on_clusters(objects)):
            if any(o["kind"] == "Deployment" for o in where):
                found += [(file.name, *f) for f in findings(where, tmp_path_factory.mktemp("score"))]
    return found


def test_each_finding_has_a_reason(found):
    without = [f for f in found if reason_of(*f[1:3]) is None]
    assert not without
    resources = [f for f in found if f[1] == "container-resources" and f[3] != ONLY_CPU_LIMIT]
    assert not resources, "requests and memory limits are set everywhere"


def test_each_reason_has_a_finding(found):
    assert {reason_of(*f[1:3]) for f in found} == set(REASONS)
