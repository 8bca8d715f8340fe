"""A second build of the same sources, in another folder, gives the same image bit for bit."""

import shutil
import subprocess

from lib import image
from lib.process import ROOT


def test_same_digest(tmp_path):
    first = image.archive()
    copy = tmp_path / "copy"
    shutil.copytree(ROOT, copy, symlinks=True, ignore=lambda folder, _: ["build"] if folder == str(ROOT) else [])
    command = [copy / "charts/image/build", "--arch", image.NATIVE, "--output", tmp_path / "second"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    second = image.archive(tmp_path / "second")
    assert second.manifests[image.NATIVE]["digest"] == first.manifests[image.NATIVE]["digest"]
