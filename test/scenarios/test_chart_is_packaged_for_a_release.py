"""A release's chart has the address of the release's image wherever it stands, and with a key a signature that helm verifies; Artifact
Hub shows the key's fingerprint."""

import shutil
import tempfile
from pathlib import Path

import pytest
import yaml

from lib.helm import helm, on_clusters
from lib.kube import go_program
from lib.process import ROOT, environment, missing, run

PACKAGE = ".github/package-chart"
NEEDED = (PACKAGE, ".version", "charts/dynamic-scoring-framework", "test/go-program")
REGISTRY, REPOSITORY = "registry.example", "team/scoring"
URL = "https://releases.example/signing-key.asc"


@pytest.fixture(name="tree")
def copy_of_the_tree(tmp_path):
    """package-chart changes it."""
    for name in NEEDED:
        copied = tmp_path / "tree" / name
        copied.parent.mkdir(parents=True, exist_ok=True)
        (shutil.copytree if (ROOT / name).is_dir() else shutil.copy)(ROOT / name, copied)
    return tmp_path / "tree"


def package(tree, **env):
    """The chart's file."""
    done = run(tree / PACKAGE, REGISTRY, REPOSITORY, tree / "release", env=environment(HELM=go_program("helm"), **env))
    assert done.returncode == 0, done.stderr
    [chart] = (tree / "release").glob("*.tgz")
    return chart


def annotations(chart):
    shown = helm("show", "chart", chart)
    assert shown.returncode == 0, shown.stderr
    return {key.removeprefix("artifacthub.io/"): yaml.safe_load(text) for key, text in yaml.safe_load(shown.stdout)["annotations"].items()}


def test_the_image_is_the_releases(tree):
    chart = package(tree)
    expected = f"{REGISTRY}/{REPOSITORY}:{(ROOT / '.version').read_text().strip()}"
    objects = [o for o in yaml.safe_load_all(helm("template", chart).stdout) if o]
    deployments = [o for o in objects + on_clusters(objects) if o["kind"] == "Deployment"]
    used = {c["image"] for d in deployments for c in d["spec"]["template"]["spec"]["containers"]}
    assert len(deployments) == 2 and used == {expected}
    shown = annotations(chart)
    assert [i["image"] for i in shown["images"]] == [expected]
    assert "signKey" not in shown and not list((tree / "release").glob("*.prov"))


def test_a_line_that_is_gone_ends_it(tree):
    """Otherwise a release would have another image than it says."""
    file = tree / "charts/dynamic-scoring-framework/Chart.yaml"
    file.write_text(file.read_text().replace("image: quay.io/", "image: elsewhere.example/"))
    done = run(tree / PACKAGE, REGISTRY, REPOSITORY, tree / "release", env=environment(HELM=go_program("helm")))
    assert done.returncode != 0 and "expected one line" in done.stderr


@pytest.fixture
def keys():
    """A folder for gpg's keys. Not in tmp_path: the agent's sockets are in it, and the name of one has at most 107 bytes."""
    home = Path(tempfile.mkdtemp(prefix="gpg-", dir="/tmp"))
    yield home
    run("gpgconf", "--kill", "all", env=environment(GNUPGHOME=str(home)))
    shutil.rmtree(home, ignore_errors=True)


def test_with_a_key_it_is_signed(tree, keys, tmp_path):
    if not shutil.which("gpg"):
        missing("needs gpg")
    env = environment(GNUPGHOME=str(keys))
    made = run("gpg", "--batch", "--passphrase", "", "--quick-generate-key", "Releases <releases@example.org>", "rsa3072", "sign", env=env)
    assert made.returncode == 0, made.stderr
    key = run("gpg", "--batch", "--armor", "--export-secret-keys", env=env).stdout
    chart = package(tree, SIGNING_KEY=key, SIGNING_KEY_URL=URL)
    listed = run("gpg", "--batch", "--with-colons", "--list-keys", env=env).stdout
    fingerprint = next(line.split(":")[9] for line in listed.splitlines() if line.startswith("fpr:"))
    shown = annotations(chart)["signKey"]
    assert shown == {"fingerprint": fingerprint, "url": URL}
    public = tree / "release" / "signing-key.asc"
    ring = tmp_path / "ring.gpg"
    assert run("gpg", "--batch", "--dearmor", "--output", ring, public, env=env).returncode == 0
    verified = helm("verify", "--keyring", ring, chart)
    assert verified.returncode == 0 and fingerprint in verified.stdout, verified.stderr
