"""What is wrong on the command line is exit status 2 with a hint; what is wrong with the configuration is 1 with
its place."""

import pytest

from lib.agent import PROGRAM
from lib.process import run


@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], "usage: dynamic-scoring"),
        (["no-such-command"], "no-such-command"),
        (["agent"], "expected --config.file=FILE"),
        (["agent", "--no-such-flag"], "--no-such-flag"),
        (["agent", "--config.file"], "--config.file"),
        (["agent", "--config.file=f", "extra"], "unexpected argument: extra"),
        (["agent", "--config.file=f", "--log.level=loud"], "debug, info, warn or error"),
        (["agent", "--config.file=f", "--log.format=xml"], "logfmt or json"),
        (["agent", "--config.file=f", "--output=yaml"], "table, json or prom"),
        (["agent", "--config.file=f", "--web.listen-address=8080"], "host:port or :port"),
        (["agent", "--config.file=f", "--cluster-name="], "a name"),
        (["check-config"], "expected a file"),
        (["check-config", "--no-such-flag"], "--no-such-flag"),
    ],
)
def test_usage(arguments, words):
    ended = run(PROGRAM, *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert words in ended.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["agent", "--help"], ["check-config", "--help"], ["--version"]])
def test_help(arguments):
    ended = run(PROGRAM, *arguments)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "dynamic-scoring" in ended.stdout


def test_all_flags_are_told():
    told = run(PROGRAM, "agent", "--help").stdout
    for flag in (
        "config.file",
        "cluster-name",
        "web.listen-address",
        "secrets.dir",
        "storage.path",
        "log.level",
        "log.format",
        "once",
    ):
        assert f"--{flag}" in told


def test_a_missing_file(tmp_path):
    for command in (["agent", f"--config.file={tmp_path}/none"], ["check-config", tmp_path / "none"]):
        ended = run(PROGRAM, *command)
        assert ended.returncode == 1
        assert "No such file or directory" in ended.stderr and "/none" in ended.stderr


def test_a_folder_or_a_huge_file(tmp_path):
    large = tmp_path / "large"
    large.write_bytes(b" " * (17 << 20))
    assert "larger than 16 MiB" in run(PROGRAM, "check-config", large).stderr
    assert "Is a directory" in run(PROGRAM, "check-config", tmp_path).stderr


def test_check_config_checks_all_files(tmp_path):
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text("clusterName: c\nsummaries: []\n")
    bad.write_text("clusterName: [\n")
    ended = run(PROGRAM, "check-config", good, bad)
    assert ended.returncode == 1
    assert f"{good}: good, 0 scorers" in ended.stdout and f"{bad}:" in ended.stderr
