"""A bad command line exits with status 2 and a hint; a bad configuration exits with status 1 and its line and
column."""

import re

import pytest

from lib.agent import PROGRAM
from lib.process import ROOT, environment, run


@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], "usage: dynamic-scoring"),
        (["no-such-command"], "no-such-command"),
        (["agent"], "missing flag: --config.file=FILE"),
        (["agent", "--managed-kubeconfig=f"], "missing flag: --cluster-name=NAME"),
        (["agent", "--leader-elect", "--config.file=f"], "--leader-elect requires a cluster: --managed-kubeconfig"),
        (["agent", "--web.kubernetes-auth", "--config.file=f"], "--web.kubernetes-auth requires a cluster: --managed-"),
        (["agent", "--once", "--managed-kubeconfig=f"], "missing flag: --cluster-name=NAME"),
        (["agent", "--once", "--addon-namespace=n"], "missing flag: --config.file=FILE or, outside a pod, "),
        (["agent", "--no-such-flag"], "--no-such-flag"),
        (["agent", "--config.file"], "--config.file"),
        (["agent", "--config.file=f", "extra"], "unexpected argument: extra"),
        (["agent", "--config.file=f", "--log.level=loud"], "debug, info, warn or error"),
        (["agent", "--config.file=f", "--log.format=xml"], "logfmt or json"),
        (["agent", "--config.file=f", "--output=yaml"], "table, json or prom"),
        (["agent", "--config.file=f", "--web.listen-address=8080"], "host:port or :port"),
        (["agent", "--config.file=f", "--cluster-name="], "a name"),
        (["check-config"], "missing argument: FILE"),
        (["check-config", "--no-such-flag"], "--no-such-flag"),
    ],
)
def test_usage(arguments, words):
    ended = run(PROGRAM, *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert words in ended.stderr


DURATIONS = {
    "health-check-interval": "a duration from 1s to 24h",
    "health-check-timeout": "a duration from 100ms to 5m",
    "web.kubernetes-auth.cache-ttl": "a duration from 0s to 1h",
    "web.kubernetes-auth.timeout": "a duration from 100ms to 1m",
}
NUMBERS = {
    "kube-api-qps": "1 to 100000",
    "kube-api-burst": "1 to 100000",
    "unhealthy-threshold": "1 to 100",
    "healthy-threshold": "1 to 100",
}
ADDRESSES = ("metrics-bind-address", "health-probe-bind-address")
NAMESPACES = ("namespace", "agent-namespace")
NO_DURATIONS = ("", "0", "0s", "-1s", "1", "30", "1x", "s", "1.s.", "1..5s", ".s", "1e3s", "0x5s", " 5s", "5s ", "inf", "99h")
GOOD_INTERVALS = ("1s", "1.5s", "1m30s", "24h", "1500ms", "1h.5m", "2000000us", "2000000000ns", "2000000µs")
NO_NUMBERS = ("", "0", "-1", "+5", " 5", "5 ", "1.5", "many", "100001", "18446744073709551617")
NO_ADDRESSES = ("", "8080", "localhost", ":", ":65536", ":http", "::1:8080", "[::1]", "http://h:80")
NO_NAMESPACES = ("", "Upper", "a_b", "a.b", "-a", "a-", "a/b", "ü", "x" * 64, "--leader-elect")


@pytest.mark.parametrize(
    "flag, value, words",
    [
        ("no-such-flag", "1", "unknown flag"),
        *((f, v, words) for f, words in DURATIONS.items() for v in NO_DURATIONS if v != "0s" or " 0s " not in words),
        ("health-check-interval", "999ms", DURATIONS["health-check-interval"]),
        ("health-check-interval", "24h0.1s", DURATIONS["health-check-interval"]),
        ("health-check-timeout", "99ms", DURATIONS["health-check-timeout"]),
        ("web.kubernetes-auth", "perhaps", "true or false"),
        ("web.kubernetes-auth.cache-ttl", "1h1ms", DURATIONS["web.kubernetes-auth.cache-ttl"]),
        ("web.kubernetes-auth.timeout", "99ms", DURATIONS["web.kubernetes-auth.timeout"]),
        ("web.kubernetes-auth.timeout", "61s", DURATIONS["web.kubernetes-auth.timeout"]),
        ("health-check-timeout", "5m1ms", DURATIONS["health-check-timeout"]),
        *((f, v, words) for f, words in NUMBERS.items() for v in NO_NUMBERS),
        ("healthy-threshold", "101", NUMBERS["healthy-threshold"]),
        *((f, v, "host:port, :port, or 0 for none") for f in ADDRESSES for v in NO_ADDRESSES),
        *((f, v, "a namespace") for f in NAMESPACES for v in NO_NAMESPACES),
        ("kubeconfig", "", "a path"),
        ("leader-elect", "perhaps", "true or false"),
        ("log.level", "loud", "debug, info, warn or error"),
        ("log.format", "xml", "logfmt or json"),
    ],
)
def test_flags_of_the_controller(flag, value, words):
    ended = run(PROGRAM, "controller", f"--{flag}={value}")
    assert (ended.returncode, ended.stdout) == (2, "")
    said, hint = ended.stderr.splitlines()
    assert said.startswith(f"dynamic-scoring controller: --{flag}: ") and words in said
    assert hint == "Try 'dynamic-scoring controller --help'."


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["extra"], "unexpected argument: extra"),
        (["--leader-elect", "true"], "unexpected argument: true"),  # as with Go's flags
        (["--leader-elect", "--", "--namespace=n"], "unexpected argument: --namespace=n"),
        (["--namespace"], "--namespace: expected a value: NAMESPACE"),
    ],
)
def test_arguments_of_the_controller(arguments, words):
    ended = run(PROGRAM, "controller", *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert words in ended.stderr


@pytest.mark.parametrize(
    "flag",
    [
        *(f"health-check-interval={d}" for d in GOOD_INTERVALS),
        *(f"health-check-timeout={d}" for d in ("100ms", ".5s", "5m", "2.s")),
        "leader-elect",
        "leader-elect=true",
        "leader-elect=false",
        "namespace=a",
        "namespace=0-" + "x" * 61,
        "kube-api-qps=100000",
        "web.kubernetes-auth.cache-ttl=0s",
        "web.kubernetes-auth.cache-ttl=1h",
        "web.kubernetes-auth.timeout=1m",
        "metrics-bind-address=[::1]:0",
        "health-probe-bind-address=0",
    ],
)
def test_good_flags_of_the_controller(flag, tmp_path):
    """They are accepted: the error is about the kubeconfig."""
    for form in (f"--{flag}", f"-{flag}", f"--{flag}".replace("=", "\0", 1)):
        if "\0" in form and flag.startswith("leader-elect"):
            continue  # a switch's value is never a word of its own
        ended = run(PROGRAM, "controller", *form.split("\0"), f"--kubeconfig={tmp_path}/none")
        assert ended.returncode == 1, ended.stderr
        assert "level=error msg=\"cannot start\"" in ended.stderr and "/none" in ended.stderr


@pytest.mark.parametrize(
    "content, words",
    [
        (None, "No such file or directory"),
        ("", "expected a map"),
        ("clusters: []", "current-context: missing"),
        ("a: b: c", "line 1: YAML"),
        ("current-context: away", "away"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used(content, words, tmp_path):
    file = tmp_path / "hub.kubeconfig"
    if content is not None:
        file.write_text(content)
    ended = run(PROGRAM, "controller", f"--kubeconfig={file}")
    assert ended.returncode == 1
    (line,) = ended.stderr.splitlines()
    assert "kubeconfig" in line and str(file) in line and words in line


def test_no_kubeconfig_and_no_pod():
    ended = run(PROGRAM, "controller", env=environment(KUBERNETES_SERVICE_HOST=""))
    assert ended.returncode == 1
    assert "no kubeconfig, and not in a pod" in ended.stderr


def test_help_of_the_controller():
    """Each flag with its default and unit; its page lists the same ones."""
    told = run(PROGRAM, "controller", "--help").stdout
    entries = re.findall(r"^  --([a-z0-9.-]+)(=\S+)?\n {8}(.+)$", told, re.M)
    names = {name for name, _, _ in entries}
    assert names >= {*DURATIONS, *NUMBERS, *ADDRESSES, *NAMESPACES, "leader-elect", "kubeconfig", "log.level"}
    for name, value, words in entries:
        assert re.search(r"\bdefault\b", words, re.I), name
        assert (value == "=DURATION") == (name in DURATIONS), name
        assert (value == "=N") == (name in NUMBERS), name
    for name, words in {**DURATIONS, **NUMBERS}.items():
        (said,) = (w for n, _, w in entries if n == name)
        assert words.removeprefix("a duration ") in said
    of_readme = (ROOT / "controller/README.md").read_text().partition("### Flags of `dynamic-scoring controller`")[2].partition("\n##")[0]
    assert set(re.findall(r"`--([a-z0-9.-]+)", of_readme)) == names


@pytest.mark.parametrize(
    "arguments", [["--help"], ["agent", "--help"], ["controller", "--help"], ["check-config", "--help"], ["check-scorer", "--help"], ["--version"]]
)
def test_help(arguments):
    ended = run(PROGRAM, *arguments)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "dynamic-scoring" in ended.stdout


def test_the_version_names_all_linked_libraries():
    """The program's own names of them, found in its shared objects; an image's static program has the same."""
    ended = run(PROGRAM, "--version")
    versions = dict(re.findall(r"(\S+?)/(\d\S*)", ended.stdout.partition("\n")[2]))
    expected = ["libcurl", "OpenSSL", "libmicrohttpd", "GnuTLS", "jansson", "libyaml", "PCRE2", "protobuf-c", "zlib", "zstd", "glibc"]
    assert ended.returncode == 0 and not {*expected, "ISA-L", "libxcrypt", "snappy"} - versions.keys(), ended.stdout
    linked = set(re.findall(r"NEEDED.*\[lib(\S+?)(?:-\d)?\.so", run("readelf", "--dynamic", PROGRAM).stdout))
    named = {"curl", "microhttpd", "gnutls", "jansson", "yaml", "pcre2-8", "pcre2", "protobuf-c", "z", "zstd", "isal", "crypt", "snappy"}
    assert linked - named <= {"c", "m", "asan", "ubsan", "tsan", "gcc_s"}


REFERENCE_FLAGS = ["--metrics-bind-address=:8443", "--leader-elect", "--health-probe-bind-address=:8081"]


@pytest.mark.parametrize(
    "name, arguments, status, words",
    [
        ("manager", REFERENCE_FLAGS, 1, "no kubeconfig, and not in a pod"),
        ("manager", [], 1, "no kubeconfig, and not in a pod"),
        ("manager", ["--metrics-secure"], 2, "dynamic-scoring controller: --metrics-secure: unknown flag"),
        ("manager", ["--help"], 0, "usage: dynamic-scoring controller [flags]"),
        ("manager", ["--version"], 0, "dynamic-scoring "),
        ("dynamic-scoring-addon", ["agent", "--hub-kubeconfig=f"], 2, "missing flag: --config.file"),
        ("dynamic-scoring-addon", ["controller"], 2, "an AddOnTemplate installs the agents"),
        ("dynamic-scoring-addon", [], 2, "usage: dynamic-scoring COMMAND"),
    ],
)
def test_names_of_the_reference_implementation(name, arguments, status, words, tmp_path):
    """Links of these names, as in the image."""
    (tmp_path / name).symlink_to(PROGRAM)
    ended = run(tmp_path / name, *arguments, env=environment(KUBERNETES_SERVICE_HOST=""))
    assert ended.returncode == status
    assert words in ended.stdout + ended.stderr


def test_help_of_the_agent():
    """Its page lists the same flags, with the same defaults."""
    told = dict(re.findall(r"^  --([a-z0-9.-]+)(?:=\S+)?\n {8}(.+)$", run(PROGRAM, "agent", "--help").stdout, re.M))
    table = (ROOT / "exporter/README.md").read_text().partition("## Flags of `dynamic-scoring agent`")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `--([a-z0-9.-]+)\S*` \|[^|]*\| ?([^|]*?) ?\|", table, re.M))
    assert rows.keys() == told.keys()
    for name, default in rows.items():
        if default == "off":
            assert re.search("Default false[.:]", told[name]), name
        for value in re.findall("`([^`]+)`", default):
            assert re.search(rf"Default\b.* {re.escape(value)}[,.:]", told[name]), name


def test_help_of_check_scorer():
    """Its page lists the same flags."""
    told = re.findall(r"^  --([a-z-]+)", run(PROGRAM, "check-scorer", "--help").stdout, re.M)
    assert re.findall(r"^\| `--([a-z-]+)=", (ROOT / "controller/check/README.md").read_text(), re.M) == told


def test_help_of_the_policy_watcher():
    """Its page lists the same flags, but for those that all servers have."""
    told = re.findall(r"^  --([a-z.-]+)(?:=\S+)?$", run(PROGRAM, "policy-watcher", "--help").stdout, re.M)
    own = [name for name in told if not re.match(r"log\.|web\.(config|kubernetes)", name)]
    table = (ROOT / "controller/policy/README.md").read_text().partition("| flag of `policy-watcher` |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `--([a-z.-]+)=[A-Z]+` ", table, re.M) == own


@pytest.mark.parametrize(
    "given, words",
    [
        ({"STABLE_DURATION_SEC": "2m"}, "STABLE_DURATION_SEC must be a number of seconds from 0 to 86400: 2m"),
        ({"STABLE_DURATION_SEC": "86401"}, "STABLE_DURATION_SEC must be a number of seconds from 0 to 86400: 86401"),
        ({"STABLE_DURATION_SEC": ""}, "STABLE_DURATION_SEC must be a number of seconds from 0 to 86400: "),
        ({"TARGET_CLAIM_NAME": "A"}, "TARGET_CLAIM_NAME must be a name"),
        ({"TARGET_CLAIM_NAME": "-a"}, "TARGET_CLAIM_NAME must be a name"),
        ({"WATCH_NAMESPACE": "a.b"}, "WATCH_NAMESPACE must be a namespace"),
        ({"POLL_INTERVAL_SEC": "often"}, "cannot start"),  # has no effect: the error is about the kubeconfig
    ],
)
def test_environment_of_the_policy_watcher(given, words, tmp_path):
    ended = run(PROGRAM, "policy-watcher", f"--kubeconfig={tmp_path}/none", env=environment(**given))
    assert ended.returncode in (1, 2) and words in ended.stdout + ended.stderr


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
    assert f"{good}: valid, 0 scorers" in ended.stdout and f"{bad}:" in ended.stderr
