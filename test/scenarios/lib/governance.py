"""Open Cluster Management's governance: it copies Policies to the clusters that a Placement selects, enforces them there, and reports
whether the clusters comply."""

import contextlib
import json
import pathlib
import tempfile

from lib.kube import go_crds, go_program
from lib.ocm import inline_kubeconfig
from lib.process import Process, environment, free_port
from lib.wait import wait_until

PROPAGATOR, ADDON, CONFIG = "governance-policy-propagator", "governance-policy-framework-addon", "config-policy-controller"
POLICY_GROUP = "apis/policy.open-cluster-management.io"


def install_crds(kube):
    """Those of the kinds that test/kube-apiserver leaves out, too."""
    files = [file for crds in ("policy", "config-policy") for file in pathlib.Path(go_crds(crds)).glob("*.yaml")]
    done = kube.kubectl("apply", "--server-side", "--force-conflicts", *(f"--filename={file}" for file in files))
    assert done.returncode == 0, done.stderr
    for path in ("v1/policies", "v1/placementbindings", "v1/configurationpolicies", "v1beta1/policysets"):
        wait_until(lambda p=path: kube.find(f"{POLICY_GROUP}/{p}"), f"{path} is served")


def admin_of(kube):
    """A kubeconfig with the certificates inside: these programs look for files in their own folder."""
    file = kube.state / "inline.kubeconfig"
    if not file.exists():
        file.write_text(json.dumps(inline_kubeconfig(kube)))
    return file


@contextlib.contextmanager
def running(name, program, *words, **env):
    with tempfile.TemporaryDirectory() as folder:
        addresses = (f"--{flag}-bind-address=127.0.0.1:{free_port()}" for flag in ("health-probe", "metrics"))
        command = [go_program(program), *words, "--leader-elect=false", *addresses]
        full = environment(OSDK_FORCE_RUN_MODE="local", **env)
        process = Process(name, command, pathlib.Path(folder) / "log", full)
        try:
            yield process
            process.check_alive()
        finally:
            process.kill()


def propagator(hub):
    """On the hub. Its placement rules are those of an older product."""
    words = (f"--kubeconfig={admin_of(hub)}", "--enable-webhooks=false", "--disable-placementrule")
    return running("policy propagator", PROPAGATOR, *words, WATCH_NAMESPACE="")


def framework_addon(hub, managed, cluster):
    """On a cluster: copies its Policies from the hub, and their status back."""
    return running(
        f"governance add-on of {cluster}",
        ADDON,
        f"--hub-cluster-configfile={admin_of(hub)}",
        f"--managed-cluster-configfile={admin_of(managed)}",
        f"--kubeconfig={admin_of(managed)}",
        f"--cluster-namespace={cluster}",
        "--disable-gatekeeper-sync",
        WATCH_NAMESPACE=cluster,
    )


def config_policy_controller(managed, cluster):
    """On a cluster: enforces and reports ConfigurationPolicies."""
    words = (f"--kubeconfig={admin_of(managed)}", f"--cluster-name={cluster}", "--evaluation-backoff=1")
    return running(f"config policy controller of {cluster}", CONFIG, "controller", *words, WATCH_NAMESPACE=cluster)
