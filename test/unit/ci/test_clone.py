#!/usr/bin/python3
"""Checks .ci/run, with a script in place of test/run: it runs in a clone that has nothing beside it, refuses changes that a clone would
not have, brings the logs, and passes on options, closing line and exit status."""

import pathlib
import shutil
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[3]
TESTS = """#!/bin/sh
set -eu
cd "$(dirname "$0")/.."
mkdir -p build/logs
git rev-parse HEAD >build/logs/commit
ls .. >build/logs/beside
echo "CI=$CI $*" >build/logs/called
echo "1 passed, 2 failed, 3 skipped"
exit 7
"""

problems = []


def check(ok, what):
    if not ok:
        problems.append(what)


def git(folder, *words):
    who = ("-c", "user.name=test", "-c", "user.email=test@example.com")
    return subprocess.run(["git", "-C", folder, *who, *words], check=True, capture_output=True, text=True).stdout.strip()


def write_script(file, text):
    file.parent.mkdir(parents=True)
    file.write_text(text)
    file.chmod(0o755)


def make_tree(folder):
    tree = folder / "tree"
    write_script(tree / ".ci" / "run", (TOP / ".ci" / "run").read_text())
    write_script(tree / "test" / "run", TESTS)
    shutil.copy(TOP / ".gitignore", tree)
    (folder / "beside").touch()
    git(folder, "init", "--quiet", tree)
    git(tree, "add", ".")
    git(tree, "commit", "--quiet", "--message=all")
    git(tree, "checkout", "--quiet", "--detach")  # as a pull request is checked out
    return tree


def run(tree, *words):
    return subprocess.run(["bash", ".ci/run", *words], cwd=tree, capture_output=True, text=True, check=False)


def check_run(tree):
    logs = tree / "build" / "logs"
    for _ in range(2):  # with what an earlier run has left, too
        done = run(tree, "--fuzz")
        check(done.returncode == 7, f"the exit status is {done.returncode}: {done.stderr}")
        check(done.stdout.splitlines()[-1:] == ["1 passed, 2 failed, 3 skipped"], f"the last line is not: {done.stdout}")
        check((logs / "called").read_text() == "CI=true --all --fuzz\n", "test/run was called otherwise")
        check((logs / "commit").read_text().strip() == git(tree, "rev-parse", "HEAD"), "another commit was tested")
        check((logs / "beside").read_text() == "clone\n", "the clone has something beside it")


def check_refusal(tree):
    for file in ("new", "test/run"):
        shutil.rmtree(tree / "build")
        with (tree / file).open("a") as out:
            out.write("# changed\n")
        done = run(tree)
        check(done.returncode == 1 and file in done.stderr, f"a changed {file} is not refused: {done}")
        check(not (tree / "build").exists(), f"tests ran with a changed {file}")
        git(tree, "stash", "--quiet", "--include-untracked")
        (tree / "build").mkdir(exist_ok=True)


def main():
    with tempfile.TemporaryDirectory() as folder:
        tree = make_tree(pathlib.Path(folder))
        check_run(tree)
        check_refusal(tree)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
