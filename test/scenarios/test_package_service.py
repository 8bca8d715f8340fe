"""The Debian package installs the agent as a service: it can be configured, reloaded, upgraded and removed."""

import re
import shutil

import pytest

from lib.exposition import Samples
from lib.fake import Fake, plain, results
from lib.machine import running_machine
from lib.package import debian_package, other_release, package_of_the_other_release
from lib.process import run
from lib.wait import wait_until

UNIT = "dynamic-scoring-agent"
CONFIG = "/etc/dynamic-scoring/agent.yaml"
DEFAULTS = "/etc/default/dynamic-scoring-agent"
TOKEN = "/etc/dynamic-scoring/secrets/api/token"


@pytest.fixture(name="machine", scope="module")
def machine_with_the_package():
    with running_machine() as machine:
        install(machine, debian_package())
        yield machine


@pytest.fixture(name="api", scope="module")
def scoring_api(machine):
    """In the machine's network; also a hub that accepts no samples."""
    fake = machine.inside(Fake)
    fake.on("/scoring", results({"node": "n1"}, 1.5))
    fake.on("/write", plain("busy", status=503))
    yield fake
    fake.close()


@pytest.fixture(name="scoring", scope="module")
def scoring_machine(machine, api):
    """The agent is configured, and has scores."""
    wait_ready(machine)
    configure(machine, api)
    machine.run("systemctl", "reload", UNIT)
    wait_scores(machine)
    return machine


def install(machine, package):
    shutil.copy(package, machine.path("/root/new.deb"))
    machine.run("apt-get", "install", "-y", "/root/new.deb")


def upgrade(machine, folder, version):
    shutil.copy(upgraded(debian_package(), folder, version), machine.path("/root/new.deb"))
    machine.run("dpkg", "--install", "--force-confold", "/root/new.deb")


def upgraded(package, folder, version):
    """The package with a higher version, in which both configuration files have changed."""
    tree, made = folder / version, folder / f"{version}.deb"
    assert run("dpkg-deb", "-R", package, tree).returncode == 0
    control = tree / "DEBIAN/control"
    lines = [f"Version: {version}" if line.startswith("Version:") else line for line in control.read_text().splitlines()]
    control.write_text("\n".join(lines) + "\n")
    for name in (CONFIG, DEFAULTS):
        with open(f"{tree}{name}", "a", encoding="utf-8") as file:
            file.write(f"# as of {version}\n")
    assert run("dpkg-deb", "-b", tree, made).returncode == 0
    return made


def show(machine, what):
    return machine.run("systemctl", "show", "--value", f"--property={what}", UNIT).strip()


def log(machine):
    return machine.run("journalctl", "--no-pager", "--output=cat", f"--unit={UNIT}")


def wait_ready(machine):
    wait_until(lambda: (answer := machine.get("/-/ready")) and answer.status == 200, "the agent is ready")


def scores(machine):
    return Samples(machine.get("/metrics").text).all("dynamic_score")


def wait_scores(machine):
    wait_ready(machine)
    return wait_until(lambda: scores(machine), "the agent has scores")


def configure(machine, api):
    """A scorer with a token, and a hub."""
    text = machine.path(CONFIG).read_text()
    assert text.count("\nsummaries: []\n") == 1
    machine.path(CONFIG).write_text(
        text.replace("\nsummaries: []\n", "\n")
        + f"""
summaries:
 - scoreName: s
   sourceType: None
   scoringEndpoint: {api.url}/scoring
   scoringEndpointAuthName: api
   scoringEndpointAuthKey: token
   scoringInterval: 1
remoteWrite:
 - name: hub
   url: {api.url}/write
"""
    )
    machine.run("install", "-D", "-m", "640", "/dev/null", TOKEN)
    machine.path(TOKEN).write_text("dummy-token-1234")


def test_a_fresh_installation_is_enabled_and_runs_without_scorers(machine):
    wait_ready(machine)
    assert machine.run("systemctl", "is-enabled", UNIT).strip() == "enabled"
    assert (show(machine, "ActiveState"), show(machine, "NRestarts")) == ("active", "0")
    assert scores(machine) == []
    assert "level=warn" not in log(machine) and "level=error" not in log(machine), log(machine)


def test_the_service_has_no_privileges(machine):
    pid = show(machine, "MainPID")
    status = dict(re.findall(r"^(\w+):\t(.*)$", machine.path(f"/proc/{pid}/status").read_text(), re.M))
    user = machine.run("id", "-u", "dynamic-scoring").strip()
    assert set(status["Uid"].split()) == {user}
    assert {status[k].strip("0") for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {""}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")
    assert machine.run("systemd-analyze", "verify", f"{UNIT}.service") == ""
    machine.run("systemd-analyze", "security", "--offline=true", "--threshold=15", f"{UNIT}.service")


def test_a_reload_applies_an_edited_file(scoring, api):
    assert [value for _, value in scores(scoring)] == [1.5]
    assert api.requests("/scoring")[-1].token == "Bearer dummy-token-1234"


def test_a_reload_of_an_invalid_file_fails_and_keeps_the_scores(scoring):
    valid = scoring.path(CONFIG).read_text()
    scoring.path(CONFIG).write_text(valid + "noSuchKey: [\n")
    scoring.run("systemctl", "reload", UNIT, status=1)
    assert f"{CONFIG}:" in log(scoring)
    assert scores(scoring)
    scoring.path(CONFIG).write_text(valid)
    scoring.run("systemctl", "reload", UNIT)


def test_unsent_samples_are_in_the_state_directory(scoring):
    def spool():
        return scoring.call("dynamic-scoring", "spool", "ls", "/var/lib/dynamic-scoring").stdout

    wait_until(lambda: int(re.search(r"(\d+) samples", spool().splitlines()[-1])[1]), "samples are in the spool")
    assert scoring.run("stat", "-c", "%U %a", "/var/lib/dynamic-scoring").split() == ["dynamic-scoring", "750"]


def test_an_upgrade_keeps_edited_files_and_restarts(scoring, tmp_path):
    before, edited = show(scoring, "MainPID"), scoring.path(CONFIG).read_text()
    upgrade(scoring, tmp_path, "9.1")
    assert scoring.path(CONFIG).read_text() == edited
    assert scoring.path(DEFAULTS).read_text().endswith("# as of 9.1\n")
    assert show(scoring, "MainPID") not in (before, "0")
    assert wait_scores(scoring)


def test_an_upgrade_leaves_a_disabled_service_alone(scoring, tmp_path):
    scoring.run("systemctl", "disable", "--now", UNIT)
    upgrade(scoring, tmp_path, "9.2")
    assert scoring.run("systemctl", "is-enabled", UNIT, status=1).strip() == "disabled"
    assert show(scoring, "ActiveState") == "inactive"
    scoring.run("systemctl", "enable", "--now", UNIT)
    assert wait_scores(scoring)


def test_a_killed_agent_is_started_again(scoring):
    restarts = int(show(scoring, "NRestarts"))
    scoring.run("systemctl", "kill", "--signal=KILL", UNIT)
    wait_until(lambda: int(show(scoring, "NRestarts")) == restarts + 1, "systemd has started it again")
    assert wait_scores(scoring)


def test_flags_come_from_the_default_file(scoring):
    before = scoring.path(DEFAULTS).read_text()
    scoring.path(DEFAULTS).write_text('ARGS="--log.format=json --cluster-name=c2"\n')
    scoring.run("systemctl", "restart", UNIT)
    assert wait_scores(scoring)[0][0]["ds_cluster"] == "c2"
    assert '"msg":"serving"' in log(scoring)
    scoring.path(DEFAULTS).write_text(before)
    scoring.run("systemctl", "restart", UNIT)


def test_invalid_flags_are_not_tried_again(scoring):
    before = scoring.path(DEFAULTS).read_text()
    scoring.path(DEFAULTS).write_text('ARGS="--no-such-flag"\n')
    scoring.call("systemctl", "restart", UNIT)
    wait_until(lambda: show(scoring, "ActiveState") == "failed", "the service has failed")
    assert show(scoring, "NRestarts") == "0"
    assert "--no-such-flag: unknown flag" in log(scoring)
    scoring.path(DEFAULTS).write_text(before)
    scoring.run("systemctl", "restart", UNIT)


def test_removing_keeps_the_configuration_and_purging_does_not():
    with running_machine() as machine:
        install(machine, debian_package())
        wait_ready(machine)
        machine.path(TOKEN).parent.mkdir()
        machine.path(TOKEN).write_text("dummy-token-1234")
        machine.run("apt-get", "remove", "-y", "dynamic-scoring")
        assert machine.get("/-/ready") is None
        assert not machine.path("/usr/bin/dynamic-scoring").exists()
        assert machine.path(CONFIG).exists() and machine.path(TOKEN).exists()
        assert machine.path("/var/lib/dynamic-scoring").exists()
        machine.run("apt-get", "purge", "-y", "dynamic-scoring")
        for name in ("/etc/dynamic-scoring", DEFAULTS, "/var/lib/dynamic-scoring"):
            assert not machine.path(name).exists(), name
        assert UNIT not in machine.run("systemctl", "list-unit-files")


@pytest.mark.parametrize("built_on", ["the_other_release", "this_release"])
def test_it_starts_on_the_other_release_of_debian(built_on):
    """Whose libraries differ. A package of Debian 12 also runs on 13, which a machine may be upgraded to."""
    if built_on == "this_release" and other_release() == "bookworm":
        pytest.skip("a package that was built on Debian 13 needs its libraries")
    package = debian_package() if built_on == "this_release" else package_of_the_other_release()
    with running_machine(other_release()) as machine:
        install(machine, package)
        wait_ready(machine)
        assert (show(machine, "ActiveState"), show(machine, "NRestarts")) == ("active", "0")
        assert "level=warn" not in log(machine) and "level=error" not in log(machine), log(machine)
        api = machine.inside(Fake)
        api.on("/scoring", results({"node": "n1"}, 1.5))
        api.on("/write", plain("busy", status=503))
        configure(machine, api)
        machine.run("systemctl", "reload", UNIT)
        assert [value for _, value in wait_scores(machine)] == [1.5]
        api.close()
