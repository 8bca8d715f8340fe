"""charts/adjustments.md: its commands add and remove one adjustment and keep what others wrote. Its admission policy lets a
group change adjustments and nothing else."""

import datetime
import itertools
import json

import pytest
from lib.hub import CONFIG, HUB_NAMESPACE
from lib.kube import DOMAIN, go_program
from lib.page import Shell, steps
from lib.process import ROOT, environment
from lib.wait import wait_until

PAGE = ROOT / "charts/adjustments.md"
POLICY = ROOT / "charts/samples/adjustments/only-adjustments.yaml"
NAME = "eu-out-of-rotation"
THEIRS = {"name": "theirs", "clusterName": "edge-*", "scoreName": "cpu", "add": -30}
MASKS = [{"clusterName": "lab", "scoreName": "*"}]
MEMBER = "--as=anna --as-group=score-operators"
# kubectl without the page's --context, as somebody.
KUBECTL = """#!/bin/sh
shift
exec {kubectl} --kubeconfig={kubeconfig} --cache-dir={cache} ${{AS:-}} "$@"
"""


def commands(heading):
    """The first of the page's commands below a heading."""
    return next(body for found, body, _ in steps(PAGE) if found == heading)


def manifest(**spec):
    metadata = {"name": CONFIG, "namespace": HUB_NAMESPACE}
    return {"apiVersion": f"{DOMAIN}/v1alpha1", "kind": "DynamicScoringConfig", "metadata": metadata, "spec": spec}


class Person:
    def __init__(self, hub, folder, who=""):
        self.hub = hub
        program = folder / "bin" / "kubectl"
        program.parent.mkdir(exist_ok=True)
        program.write_text(
            KUBECTL.format(kubectl=go_program("kubectl"), kubeconfig=hub.kube.kubeconfig(), cache=folder / "cache")
        )
        program.chmod(0o755)
        env = environment(PATH=f"{program.parent}:/usr/bin:/bin", AS=who)
        self.shell = Shell(folder, env, folder / f"state{len(who)}")
        self.who, self.file = who.split(), folder / "config.json"

    def run(self, words):
        return self.shell.run(words)

    def kubectl(self, *words):
        return self.hub.kubectl(*self.who, *words)

    def apply(self, *words, **spec):
        self.file.write_text(json.dumps(manifest(**spec)))
        return self.kubectl("apply", *words, "-f", str(self.file))

    def patch(self, what):
        return self.kubectl("patch", "dynamicscoringconfig", CONFIG, "--type=merge", f"--patch={json.dumps(what)}")


@pytest.fixture(name="admin")
def with_what_others_wrote(hub, tmp_path):
    admin = Person(hub, tmp_path)
    done = admin.apply(masks=MASKS)
    assert done.returncode == 0, done.stderr
    assert admin.patch({"spec": {"adjustments": [THEIRS]}}).returncode == 0
    return admin


def adjustments(hub):
    return [a["name"] for a in hub.config()["spec"].get("adjustments", [])]


def test_one_entry_comes_and_goes(hub, admin):
    admin.run(commands("Out"))
    assert adjustments(hub) == ["theirs", NAME] and hub.config()["spec"]["masks"] == MASKS
    entry = hub.config()["spec"]["adjustments"][1]
    until = datetime.datetime.fromisoformat(entry["until"])
    assert abs((until - datetime.datetime.now(datetime.UTC)).total_seconds() - 3600) < 300

    admin.patch({"spec": {"adjustments": [*hub.config()["spec"]["adjustments"], {**THEIRS, "name": "later"}]}})
    admin.run(commands("After"))
    assert adjustments(hub) == ["theirs", "later"] and hub.config()["spec"]["masks"] == MASKS
    admin.run(commands("After"))  # nothing to remove
    admin.apply(masks=[])  # as GitOps does, from a file without adjustments
    assert adjustments(hub) == ["theirs", "later"] and hub.config()["spec"]["masks"] == []
    admin.patch({"spec": {"adjustments": None}})
    admin.run(commands("After"))
    admin.run(commands("Out"))
    assert adjustments(hub) == [NAME]


def test_a_change_in_the_meantime_is_a_conflict(hub, admin, tmp_path):
    read = commands("Out").split("|\n  kubectl")[0]
    (tmp_path / "patch.json").write_text(admin.run(read))
    admin.patch({"spec": {"adjustments": [THEIRS, {**THEIRS, "name": "later"}]}})
    patch = ["--type=merge", f"--patch-file={tmp_path / 'patch.json'}"]
    refused = admin.kubectl("patch", "dynamicscoringconfig", CONFIG, *patch)
    assert refused.returncode != 0 and "the object has been modified" in refused.stderr
    assert adjustments(hub) == ["theirs", "later"]


def test_what_the_page_warns_of(hub, admin):
    assert admin.patch({"spec": {"adjustments": [{**THEIRS, "name": "mine"}]}}).returncode == 0
    assert adjustments(hub) == ["mine"]
    done = admin.apply("--server-side", "--field-manager=me", adjustments=[{**THEIRS, "name": "more"}])
    assert done.returncode == 0, done.stderr
    assert "masks" not in hub.config()["spec"]


@pytest.fixture(name="member")
def of_the_group(hub, admin, tmp_path):
    done = admin.kubectl("apply", "-f", str(POLICY))
    assert done.returncode == 0, done.stderr
    member = Person(hub, tmp_path, MEMBER)
    try:
        tries = itertools.count()
        wait_until(lambda: member.patch({"metadata": {"labels": {"try": f"n{next(tries)}"}}}).returncode, "the policy is in force")
        admin.patch({"metadata": {"labels": None}})
        yield member
    finally:
        admin.kubectl("delete", "-f", str(POLICY))


def test_the_group_changes_adjustments(hub, member):
    member.run(commands("Out"))
    assert adjustments(hub) == ["theirs", NAME]
    member.run(commands("After"))
    refused = member.apply(masks=MASKS, adjustments=[{**THEIRS, "add": -20}])
    assert refused.returncode != 0 and "no labels, annotations" in refused.stderr, "the page says so"
    assert member.patch({"spec": {"adjustments": []}}).returncode == 0
    assert adjustments(hub) == [] and hub.config()["spec"]["masks"] == MASKS


OTHER_CHANGES = {
    "a mask": {"spec": {"masks": [{"clusterName": "*", "scoreName": "*"}]}},
    "no masks": {"spec": {"masks": None}},
    "a new field": {"spec": {"mask": MASKS}},
    "no spec": {"spec": None},
    "a label": {"metadata": {"labels": {"a": "b"}}},
    "an annotation": {"metadata": {"annotations": {"a": "b"}}},
    "no annotations": {"metadata": {"annotations": None}},
    "a finalizer": {"metadata": {"finalizers": ["example.com/mine"]}},
    "an owner": {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": "b"}]}},
}


def test_and_nothing_else(hub, admin, member):
    was = hub.config()
    for what, change in OTHER_CHANGES.items():
        both = {**change, "spec": {**(change.get("spec") or {}), "adjustments": []}} if change.get("spec", True) else change
        for one in (change, both):
            refused = member.patch(one)
            assert refused.returncode != 0, what
            assert "members of score-operators may change spec.adjustments only" in refused.stderr, what
    assert member.kubectl("delete", "dynamicscoringconfig", CONFIG).returncode != 0
    status = [f"--patch={json.dumps({'status': {'conditions': []}})}", "--subresource=status", "--type=merge"]
    assert member.kubectl("patch", "dynamicscoringconfig", CONFIG, *status).returncode != 0
    assert hub.config() == was
    for what, change in OTHER_CHANGES.items():
        assert admin.patch(change).returncode == 0 or what == "no spec", what  # whoever is not in the group
        admin.patch({"metadata": {"finalizers": None}})
