"""The workflows of CI and of a release are what GitHub takes."""

import subprocess

from lib.kube import go_program
from lib.process import ROOT


def test_actionlint():
    done = subprocess.run(
        [go_program("actionlint"), "-shellcheck=", "-pyflakes=", *sorted((ROOT / ".github/workflows").glob("*.yml"))],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
