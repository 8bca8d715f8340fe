"""The Debian package of the release build."""

import fcntl
import functools
import os
import shutil

from lib.process import ROOT, environment, run

LONG_BUILD = 900


def build(source, folder, env=None, *options):
    """Builds the release in the folder, and the package of it. Returns the package's path."""

    def step(*command, **more):
        ended = run(*command, timeout=LONG_BUILD, env=env or environment(), **more)
        assert ended.returncode == 0, ended.stdout[-4000:] + ended.stderr[-4000:]

    step("cmake", "-S", source, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DSANITIZE=", *options)
    step("cmake", "--build", folder, "--target", "dynamic-scoring", "dynamic-scoring-cbc", "documents", "debian_changelog")
    shutil.rmtree(folder / "package", ignore_errors=True)
    step("cpack", "-B", folder / "package", cwd=folder)
    (package,) = (folder / "package").glob("*.deb")
    return package


@functools.cache
def debian_package():
    """Of the release build, which test/run has made: built once in a run of the tests, since its workers share it."""
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
