"""Open Cluster Management's own programs, on API servers of test/kube-apiserver."""

import base64
import contextlib
import fcntl
import json
import pathlib
import shutil
import socket
import tempfile

from lib.kube import MERGE_PATCH, go_program, script
from lib.ocm_rights import ADDON_MANAGER, ADDON_MANAGER_ROLES, WORK_AGENT, grant
from lib.process import LOG_TAIL, Process, free_port, missing
from lib.rights import kubeconfig_of
from lib.wait import LONG, wait_until

PLACEMENTS = "apis/cluster.open-cluster-management.io/v1beta1/namespaces/default/placements"
DECISIONS = "apis/cluster.open-cluster-management.io/v1beta1/namespaces/default/placementdecisions"
SETS = "apis/cluster.open-cluster-management.io/v1beta2/managedclustersets"
BINDINGS = "apis/cluster.open-cluster-management.io/v1beta2/namespaces/default/managedclustersetbindings"
SET_LABEL = "cluster.open-cluster-management.io/clusterset"
OF_PLACEMENT = "cluster.open-cluster-management.io/placement"  # a label of PlacementDecisions
CERTIFICATES, TOKENS = "csr", "token"  # what add-ons get for the hub; tokens since OCM 1.2
CRDS = "apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WEBHOOKS = "apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
WEBHOOK_PATH = "/validate-work-open-cluster-management-io-v1-manifestwork"
WEBHOOK_FIXED_PORTS = (8000, 8080)  # health and metrics; no flag changes them


def version():
    """Of the tested release: (1, 2, 1)."""
    return tuple(int(part) for part in script("versions", "ocm").split("."))


@contextlib.contextmanager
def running(name, kube, program, *words, account=None):
    """kube: the API server of its --kubeconfig, whose paths are relative to the current folder; of the admin, or of a
    ServiceAccount."""
    home = kube.kubeconfig().parent
    with tempfile.TemporaryDirectory() as folder:
        own = pathlib.Path(folder) / "kubeconfig"
        kubeconfig = kubeconfig_of(kube, account, own) if account else "kubeconfig"
        command = ["env", "-C", home, go_program(program), *words, f"--kubeconfig={kubeconfig}"]
        process = Process(name, command, pathlib.Path(folder) / "log")
        try:
            yield process
            process.check_alive()
        except AssertionError as error:  # of a fixture: the process is gone by the time that pytest shows logs
            raise AssertionError(f"{error}\n---- the end of the log of {name}:\n{process.log()[-LOG_TAIL:]}") from error
        finally:
            process.kill()


def controller_flags():
    return ("--disable-leader-election", "--namespace=default", f"--listen=127.0.0.1:{free_port()}")


def work_agent(hub, managed, cluster, hub_kubeconfig=None):
    """On the cluster `managed`; returns feedback every second rather than every ten. As the admin of both, or as the
    cluster that a hub kubeconfig names and with the rights of its own ServiceAccount."""
    with_hub = hub_kubeconfig or hub.kubeconfig()
    return running(
        f"work agent of {cluster}",
        managed,
        "ocm-work",
        "agent",
        *controller_flags(),
        f"--hub-kubeconfig={with_hub}",
        f"--workload-source-config={with_hub}",
        f"--spoke-cluster-name={cluster}",
        f"--agent-id={cluster}",
        "--status-sync-interval=1s",
        account=WORK_AGENT if hub_kubeconfig else None,
    )


def registration_controller(hub):
    """On the hub; approves the certificate requests of clusters that its admin registers."""
    gates = "--feature-gates=ManagedClusterAutoApproval=true"
    words = ("controller", *controller_flags(), gates, "--auto-approved-csr-users=admin")
    return running("registration controller", hub, "ocm-registration", *words)


def registration_agent(hub, managed, cluster, folder, credentials=CERTIFICATES):
    """Registers the cluster `managed` at the hub, then its add-ons, which get certificates or tokens. folder: for its hub
    kubeconfig and the one to begin with."""
    bootstrap = pathlib.Path(folder) / "bootstrap"
    bootstrap.write_text(json.dumps(inline_kubeconfig(hub)))
    return running(
        f"registration agent of {cluster}",
        managed,
        "ocm-registration",
        "agent",
        *controller_flags(),
        f"--bootstrap-kubeconfig={bootstrap}",
        f"--hub-kubeconfig-dir={folder}/hub-kubeconfig",
        f"--spoke-cluster-name={cluster}",
        f"--agent-id={cluster}",
        *([] if credentials == CERTIFICATES else [f"--addon-kubeclient-registration-auth={credentials}"]),
    )


def inline_kubeconfig(kube):
    """The admin's, with its files inside, as the one that a cluster is registered with."""
    user = kube.kubeconfig().parent
    ca, cert, key = (base64.b64encode((user / f).read_bytes()).decode() for f in ("ca.crt", "tls.crt", "tls.key"))
    server = {"server": f"https://127.0.0.1:{kube.port}", "certificate-authority-data": ca}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "hub", "cluster": server}],
        "users": [{"name": "admin", "user": {"client-certificate-data": cert, "client-key-data": key}}],
        "contexts": [{"name": "hub", "context": {"cluster": "hub", "user": "admin"}}],
        "current-context": "hub",
    }


def addon_manager(hub):
    """With its own rights only."""
    grant(hub, ADDON_MANAGER, *ADDON_MANAGER_ROLES)
    return running("add-on manager", hub, "ocm-addon", "manager", *controller_flags(), account=ADDON_MANAGER)


def work_manager(hub):
    """On the hub; makes ManifestWorks of ManifestWorkReplicaSets."""
    gates = "--feature-gates=ManifestWorkReplicaSet=true"
    return running("work manager", hub, "ocm-work", "manager", *controller_flags(), gates)


def controller_manager(kube):
    """Of Kubernetes: signs approved certificate requests, collects garbage, ends namespaces, fills the ClusterRole
    `admin`."""
    controllers = (
        "certificatesigningrequest-signing-controller",
        "garbage-collector-controller",
        "namespace-controller",
        "clusterrole-aggregation-controller",
    )
    return running(
        "controller manager",
        kube,
        "kube-controller-manager",
        f"--controllers={','.join(controllers)}",
        "--leader-elect=false",
        f"--secure-port={free_port()}",
        "--bind-address=127.0.0.1",
        f"--cert-dir={kube.state}",
        f"--cluster-signing-cert-file={kube.state}/ca.crt",
        f"--cluster-signing-key-file={kube.state}/ca.key",
    )


def placement_controller(hub):
    return running("placement controller", hub, "ocm-placement", "controller", *controller_flags())


def make_placement(hub, name, resource, item):
    """Selects the one cluster in the default set with the highest item in the AddOnPlacementScore `resource`."""
    exclusive = {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}
    hub.put(SETS, "ManagedClusterSet", "default", exclusive)
    hub.put(BINDINGS, "ManagedClusterSetBinding", "default", {"clusterSet": "default"})
    score = {"type": "AddOn", "addOn": {"resourceName": resource, "scoreName": item}}
    policy = {"mode": "Exact", "configurations": [{"weight": 1, "scoreCoordinate": score}]}
    hub.put(PLACEMENTS, "Placement", name, {"numberOfClusters": 1, "prioritizerPolicy": policy})


def remove_placement(hub, name):
    for path in (f"{PLACEMENTS}/{name}", f"{BINDINGS}/default", f"{SETS}/default"):
        hub.kube.delete(path)


def decided(hub):
    """The clusters that placements have selected."""
    found = hub.kube.call("GET", DECISIONS)["items"]
    return [d["clusterName"] for one in found for d in one.get("status", {}).get("decisions", [])]


def put_global_set(hub):
    """The ManagedClusterSet of all clusters, which OCM's registration controller makes."""
    every = {"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}}
    hub.put(SETS, "ManagedClusterSet", "global", every)


def decisions_of(hub, namespace, placement):
    """The clusters that one Placement has selected, by name."""
    path = DECISIONS.replace("/namespaces/default/", f"/namespaces/{namespace}/")
    label = f"cluster.open-cluster-management.io%2Fplacement%3D{placement}"
    found = hub.kube.call("GET", f"{path}?labelSelector={label}")["items"]
    return sorted(d["clusterName"] for one in found for d in one.get("status", {}).get("decisions", []))


@contextlib.contextmanager
def fixed_ports():
    """One webhook at a time has them on this machine; skips the test where another program does."""
    with open(pathlib.Path(tempfile.gettempdir()) / "dynamic-scoring-webhook.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for port in WEBHOOK_FIXED_PORTS:
            with socket.socket() as s:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    s.bind(("", port))
                except OSError as error:
                    missing(f"OCM's webhooks need port {port}: {error}")
        yield


def ca_bundle(kube):
    return base64.b64encode((kube.state / "ca.crt").read_bytes()).decode()


@contextlib.contextmanager
def webhook_server(name, kube, program):
    """Its port."""
    port = free_port()
    with fixed_ports(), tempfile.TemporaryDirectory() as folder:
        for ours, theirs in (("server.crt", "tls.crt"), ("server.key", "tls.key")):
            shutil.copy(kube.state / ours, pathlib.Path(folder) / theirs)
        with running(name, kube, program, "webhook-server", f"--port={port}", f"--certdir={folder}"):
            wait_until(lambda: listens(port), f"the {name} listens", LONG)
            yield port


@contextlib.contextmanager
def addon_webhook(kube):
    """The webhook that converts add-ons between their two versions, as OCM installs it since 1.2."""
    with webhook_server("add-on webhook", kube, "ocm-addon") as port:
        client = {"url": f"https://127.0.0.1:{port}/convert", "caBundle": ca_bundle(kube)}
        webhook = {"clientConfig": client, "conversionReviewVersions": ["v1", "v1beta1"]}
        change = {"spec": {"conversion": {"strategy": "Webhook", "webhook": webhook}}}
        for kind in ("clustermanagementaddons", "managedclusteraddons"):
            kube.call("PATCH", f"{CRDS}/{kind}.addon.open-cluster-management.io", change, MERGE_PATCH)
        yield


@contextlib.contextmanager
def work_webhook(kube):
    """The webhook that validates each write of a ManifestWork, as OCM installs it."""
    with webhook_server("work webhook", kube, "ocm-work") as port:
        name = "manifestworkvalidators.admission.work.open-cluster-management.io"
        what = {
            "apiGroups": ["work.open-cluster-management.io"],
            "apiVersions": ["*"],
            "resources": ["manifestworks"],
            "operations": ["CREATE", "UPDATE"],
        }
        webhook = {
            "name": name,
            "failurePolicy": "Fail",
            "clientConfig": {"url": f"https://127.0.0.1:{port}{WEBHOOK_PATH}", "caBundle": ca_bundle(kube)},
            "rules": [what],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "timeoutSeconds": 10,
        }
        kube.call("POST", WEBHOOKS, {"metadata": {"name": name}, "webhooks": [webhook]})
        try:
            yield
        finally:
            kube.delete(f"{WEBHOOKS}/{name}")


def listens(port):
    socket.create_connection(("127.0.0.1", port), 10).close()
    return True
