#!/usr/bin/python3
"""Checks test/go-program with a script in place of Go: what this machine's Go cannot build or download is skipped with a word, and
fails in CI."""

import os
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[3]
# It reads modules as Go does, and is too old for all of them.
OLD_GO = """#!/bin/sh
case $* in
version) echo "go version go1.19" ;;
"mod download"*)
    [ ! -e "$HOME/offline" ] || exit 1
    printf '\\t"GoMod": "%s/cache/download/m/@v/v1.mod",\\n' "$HOME"
    ;;
*)
    echo "go.mod:2: invalid go version '1.26.0'" >&2
    exit 1
    ;;
esac
"""
MODULE = "github.com/yuin/gopher-lua"

problems = []


def check(ok, what):
    if not ok:
        problems.append(what)


def make_home(folder):
    """A cache of Go's with the module of glua, and that Go."""
    version = subprocess.run([TOP / "test/versions", "lua"], check=True, capture_output=True, text=True).stdout.strip()
    (folder / "bin").mkdir()
    (folder / "bin/go").write_text(OLD_GO)
    (folder / "bin/go").chmod(0o755)
    module = folder / "cache/download/m/@v/v1.mod"
    module.parent.mkdir(parents=True)
    module.write_text("module m\ngo 1.26.0\n")
    sums = folder / f"{MODULE}@v{version}/go.sum"
    sums.parent.mkdir(parents=True)
    sums.touch()


def build(home, **more):
    env = {"HOME": str(home), "PATH": f"{home}/bin:{os.environ['PATH']}", "LC_ALL": "C.UTF-8", **more}
    done = subprocess.run([TOP / "test/go-program", "glua"], env=env, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def expect(done, status, *words):
    for word in words:
        check(word in done[1], f"this does not say {word!r}: {done[1]}")
    check(done[0] == status, f"the exit status is {done[0]} and not {status}: {done[1]}")


def check_skips(home):
    expect(build(home), 77, "skipped: go version go1.19 cannot build glua", "invalid go version '1.26.0'")
    expect(build(home, CI="true"), 1, "go version go1.19 cannot build glua")


def check_offline(home):
    (home / "offline").touch()
    expect(build(home), 77, f"skipped: {MODULE} v", "cannot be downloaded")
    expect(build(home, CI="true"), 1, "cannot be downloaded")


for case in (check_skips, check_offline):
    with tempfile.TemporaryDirectory() as name:
        home = pathlib.Path(name)
        make_home(home)
        case(home)
for problem in problems:
    print(problem)
sys.exit(1 if problems else 0)
