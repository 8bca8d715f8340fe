"""The image that charts/image/build made: its files, and its program as a pod would run it."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tarfile

import pytest

from lib.agent import Agent
from lib.process import ROOT, missing

IMAGE = pathlib.Path(os.environ.get("DS_IMAGE", ROOT / "build/image")).resolve()
NATIVE = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
USER = "65532"
# In a mount namespace of its own the root is read-only, as a pod's is.
IN_THE_IMAGE = (
    "mount --bind {0} {0} && mount -o remount,ro,bind {0} && "
    'exec chroot --userspec={1}:{1} {0} "$0" "$@"'
)


def need_image(arch=NATIVE):
    """Skips where there is none; test/run builds that of this machine, a release all. In CI it must be there."""
    if os.environ.get("DS_SHORT"):
        pytest.skip("left out: test/run --all builds the image")
    if not (IMAGE / "dynamic-scoring.tar").exists():
        missing(f"charts/image/build has not been run: {IMAGE} holds no image")
    if arch != NATIVE and not (IMAGE / arch).exists():
        pytest.skip(f"left out: charts/image/build --arch {arch} makes this one, and so does a release")


def files(arch):
    need_image(arch)
    return IMAGE / arch


def sbom(arch):
    need_image(arch)
    return json.loads((IMAGE / f"dynamic-scoring-{arch}.spdx.json").read_text())


class Archive:
    """The OCI archive: its images by architecture."""

    def __init__(self, path):
        with tarfile.open(path) as tar:
            self.blobs = {m.name.replace("blobs/sha256/", "sha256:"): tar.extractfile(m).read() for m in tar if m.isfile()}
        top = json.loads(self.blobs["index.json"])["manifests"]
        assert len(top) == 1
        self.digest = top[0]["digest"]
        self.manifests = {m["platform"]["architecture"]: m for m in self.json(self.digest)["manifests"]}

    def json(self, digest):
        return json.loads(self.blobs[digest])

    def manifest(self, arch):
        return self.json(self.manifests[arch]["digest"])

    def config(self, arch):
        return self.json(self.manifest(arch)["config"]["digest"])


def archive(folder=None):
    need_image()
    return Archive((folder or IMAGE) / "dynamic-scoring.tar")


def command(root, *arguments):
    """Runs a program of the image as its user, with its files as a read-only root."""
    return ["unshare", "--mount", "sh", "-c", IN_THE_IMAGE.format(root, USER), *arguments]


class ImageAgent(Agent):
    """An agent from the image. Its configuration is in /etc/dynamic-scoring there."""

    def __init__(self, root, env):
        folder = root / "etc/dynamic-scoring"
        folder.mkdir(exist_ok=True)
        super().__init__(folder, env=env)
        self.command = command(root, "/dynamic-scoring", *self.command[1:])
        self.command = [str(c).replace(str(root), "", 1) if str(c).startswith("--config.file") else c for c in self.command]


@contextlib.contextmanager
def running_image(root, config, env):
    agent = ImageAgent(root, env)
    agent.write(config)
    try:
        agent.start()
        yield agent
        agent.process.end()
    finally:
        if agent.process:
            agent.process.kill()


def copy_of(arch, folder):
    """A copy of its files, for tests that add some."""
    root = folder / "root"
    shutil.copytree(files(arch), root, symlinks=True)
    subprocess.run(["chmod", "-R", "go+rX", folder], check=True)
    for parent in folder.parents:
        if parent != pathlib.Path("/") and parent.stat().st_uid == os.geteuid():
            parent.chmod(parent.stat().st_mode | 0o011)
    return root
