"""The Debian package of the release build."""

import fcntl
import functools
import os
import shutil

import pytest

from lib.process import ROOT, environment, run

LONG_BUILD = 900


def build(source, folder, env=None, *options):
    """Builds the release in the folder, and the package of it. Returns the package's path."""

    def step(*command, **more):
        ended = run(*command, timeout=LONG_BUILD, env=env or environment(), **more)
        assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-4000:]

    step("cmake", "-S", source, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DSANITIZE=", *options)
    step("cmake", "--build", folder, "--target", "dynamic-scoring", "documents", "debian_changelog")
    shutil.rmtree(folder / "package", ignore_errors=True)
    step("cpack", "-B", folder / "package", cwd=folder)
    (package,) = (folder / "package").glob("*.deb")
    return package


def other_release():
    """The release of Debian that this machine is not."""
    return run(ROOT / "test/debian-root", "other").stdout.strip()


@functools.cache
def package_of_the_other_release():
    """Built in a folder of its own, on a Debian of that release; a skip with the reason where that cannot be had."""
    release = other_release()
    folder = ROOT / "build" / f"package-{release}"
    made = run(ROOT / "charts/package/build", release, folder, timeout=LONG_BUILD)
    if made.returncode == 77:
        pytest.skip(made.stderr.strip())
    assert made.returncode == 0, made.stdout[-4000:] + made.stderr[-4000:]
    (package,) = folder.glob("dynamic-scoring_*.deb")
    return package


@functools.cache
def debian_package():
    """Of the release build, which test/run has made: built once in a run of the tests, since its workers share it."""
    if os.environ.get("DS_SHORT"):
        pytest.skip("left out: test/run --all builds the package")
    folder = ROOT / "build"
    folder.mkdir(exist_ok=True)
    testrun = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    with open(folder / "package.lock", "a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        if lock.read() == testrun:
            (package,) = (folder / "package").glob("*.deb")
            return package
        package = build(ROOT, folder)
        lock.truncate(0)
        lock.write(testrun)
        return package
