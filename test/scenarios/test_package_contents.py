"""What the package and `cmake --install` install: Debian's rules are kept, manual pages and completion match --help, and a
second build of the same commit gives the same bits."""

import os
import re
import shutil
import subprocess

import pytest

from lib.package import build, debian_package
from lib.process import ROOT, environment, run

PROGRAM = "dynamic-scoring"
PAGES = ("", "-agent", "-controller", "-check-config", "-check-scorer", "-scorer", "-spool")


@pytest.fixture(name="tree", scope="module")
def installed_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    assert run("dpkg-deb", "-x", debian_package(), folder).returncode == 0
    return folder


def test_lintian_has_no_objections():
    ended = run("lintian", "--allow-root", "--fail-on=error,warning", debian_package())
    assert (ended.returncode, ended.stdout) == (0, "")


def test_the_program_is_hardened_and_names_no_folder(tree):
    program = tree / "usr/bin" / PROGRAM
    headers = run("readelf", "--wide", "--dynamic", "--program-headers", program).stdout
    assert "GNU_RELRO" in headers and "BIND_NOW" in headers and "Flags: NOW PIE" in headers
    assert str(ROOT).encode() not in program.read_bytes()


@pytest.mark.parametrize("name", PAGES)
def test_manual_pages_render_and_have_all_flags(tree, name):
    page = tree / f"usr/share/man/man1/{PROGRAM}{name}.1.gz"
    env = environment(LC_ALL="C.UTF-8", MANWIDTH="100", MANROFFSEQ="")
    warnings = run("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page, env=env)
    assert (warnings.returncode, warnings.stderr) == (0, "")
    shown = run("man", "-l", page, env=env).stdout
    told = run(tree / "usr/bin" / PROGRAM, *filter(None, [name[1:]]), "--help").stdout
    for flag in re.findall(r"^  (--\S+)", told, re.M):
        assert re.search(rf"^ +{re.escape(flag)}( |$)", shown, re.M), flag
    for line in re.findall(r"^        (.+)$", told, re.M):
        assert " ".join(line.split()) in " ".join(shown.split())


def test_no_link_of_the_pages_leads_nowhere(tree):
    pages = sorted((tree / "usr/share/doc/dynamic-scoring").rglob("*.md"))
    links = [(p, target) for p in pages for target in re.findall(r"\]\(([^)#\s]+)", p.read_text()) if "://" not in target]
    assert len(pages) > 10 and len(links) > 20
    assert not [(str(p.relative_to(tree)), target) for p, target in links if not (p.parent / target).exists()]


def test_an_upgrade_removes_the_package_of_the_second_solver(tree):
    assert not (tree / "usr/lib/dynamic-scoring").exists()
    for field in ("Conflicts", "Replaces"):
        assert run("dpkg-deb", "--field", debian_package(), field).stdout.strip() == "dynamic-scoring-optimizer"


def complete(tree, *words):
    """What bash offers after these words; readline takes `=` as one."""
    script = """
        compopt() { :; }
        . "$1"; shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _dynamic_scoring
        printf '%s\\n' "${COMPREPLY[@]}"
    """
    file = tree / "usr/share/bash-completion/completions" / PROGRAM
    ended = subprocess.run(
        ["bash", "-uc", script, "-", file, PROGRAM, *words], capture_output=True, text=True, check=False, cwd=tree / "etc"
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout.split()


@pytest.mark.parametrize(
    "words, offered",
    [
        ([""], ["agent", "controller", "optimizer", "check-config", "check-scorer", "policy-watcher", "scorer", "spool", "--version", "--help"]),
        (["c"], ["controller", "check-config", "check-scorer"]),
        (["agent", "--log"], ["--log.level=", "--log.format="]),
        (["agent", "--on"], ["--once"]),
        (["agent", "--log.level", "="], ["debug", "info", "warn", "error"]),
        (["agent", "--log.level", "=", "w"], ["warn"]),
        (["agent", "--output", ""], ["table", "json", "prom"]),
        (["agent", "--config.file", "=", "dyn"], ["dynamic-scoring"]),
        (["agent", "--storage.path", "=", "def"], ["default"]),
        (["agent", "--storage.path", "=", "default/"], []),
        (["agent", "--cluster-name", "=", ""], []),
        (["controller", "--leader-elect", "--kubec"], ["--kubeconfig="]),
        (["check-config", "default/d"], ["default/dynamic-scoring-agent"]),
        (["check-config", "-"], ["--web=", "--help"]),
        (["check-config", "--web", "=", "default/d"], ["default/dynamic-scoring-agent"]),
        (["check-scorer", "--token-file", "=", "default/d"], ["default/dynamic-scoring-agent"]),
        (["check-scorer", "--output", ""], ["table", "json"]),
        (["scorer", "s"], ["static"]),
        (["scorer", "mean", "--token"], ["--token-file="]),
        (["spool", ""], ["ls", "verify", "export"]),
        (["spool", "ls", "def"], ["default"]),
    ],
)
def test_bash_completes(tree, words, offered):
    assert complete(tree, *words) == offered


@pytest.mark.parametrize("command", ["agent", "controller"])
def test_bash_completes_all_flags(tree, command):
    told = re.findall(r"^  (--[^=\s]+=?)", run(tree / "usr/bin" / PROGRAM, command, "--help").stdout, re.M)
    assert complete(tree, command, "-") == [*told, "--help"]


def test_cmake_installs_under_any_prefix_and_keeps_edited_files(tmp_path):
    debian_package()
    install = ["cmake", "--install", ROOT / "build", "--prefix", "/opt/ds"]
    env = environment(DESTDIR=str(tmp_path))
    assert run(*install, env=env).returncode == 0
    top = tmp_path / "opt/ds"
    unit = (top / "lib/systemd/system/dynamic-scoring-agent.service").read_text()
    assert "ExecStart=/opt/ds/bin/dynamic-scoring agent --config.file=/opt/ds/etc/dynamic-scoring/agent.yaml $ARGS" in unit
    assert run(top / "bin" / PROGRAM, "check-config", top / "etc/dynamic-scoring/agent.yaml").returncode == 0
    assert (top / "share/doc/dynamic-scoring/LICENSE").exists() and (top / f"share/man/man1/{PROGRAM}.1.gz").exists()
    (top / "etc/dynamic-scoring/agent.yaml").write_text("edited")
    assert run(*install, env=env).returncode == 0
    assert (top / "etc/dynamic-scoring/agent.yaml").read_text() == "edited"


@pytest.mark.skipif("CCACHE_BASEDIR" in os.environ, reason="CCACHE_BASEDIR changes paths in debug information")
def test_a_second_build_gives_the_same_bits(tmp_path):
    """In another folder, time zone and language."""
    source = tmp_path / "another" / "folder"
    files = run("git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").stdout
    for name in filter(lambda n: n and (ROOT / n).exists() and not n.startswith("test/"), files.split("\0")):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    git = run("git", "-C", ROOT, "rev-parse", "--absolute-git-dir").stdout.strip()
    env = environment(GIT_DIR=git, TZ="Asia/Tokyo", LC_ALL="C")
    again = build(source, tmp_path / "made", env)
    assert again.name == debian_package().name
    same = again.read_bytes() == debian_package().read_bytes()
    assert same, "compare them with diffoscope"  # pytest would need minutes to show the difference


def test_a_strict_umask_has_no_effect_on_the_package(tmp_path):
    debian_package()
    before = os.umask(0o077)
    try:
        assert run("cpack", "-B", tmp_path, cwd=ROOT / "build").returncode == 0
    finally:
        os.umask(before)
    (package,) = tmp_path.glob("*.deb")
    assert run("dpkg-deb", "-c", package).stdout == run("dpkg-deb", "-c", debian_package()).stdout
