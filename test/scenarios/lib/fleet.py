"""A hub and managed clusters, each a real API server, with Open Cluster Management's own controllers and agents between them."""

import concurrent.futures
import contextlib
import pathlib
import tempfile

from lib import ocm
from lib.kube import running_kube
from lib.ocm_rights import WORK_AGENT, WORK_AGENT_ROLES, aggregate, bind, grant
from lib.wait import LONG, wait_until

CLUSTERS = "apis/cluster.open-cluster-management.io/v1/managedclusters"
ADDONS = "apis/addon.open-cluster-management.io/v1alpha1/namespaces/{}/managedclusteraddons"
MANAGED_CLUSTER = {
    "apiVersion": "cluster.open-cluster-management.io/v1",
    "kind": "ManagedCluster",
    "spec": {"hubAcceptsClient": True},
}
ADDON_WORKS = "apis/work.open-cluster-management.io/v1/namespaces/{}/manifestworks"


class Fleet:
    def __init__(self, hub, clusters, credentials):
        self.hub, self.clusters = hub, clusters  # clusters: {name: Kube}
        self.credentials = credentials  # of add-ons

    def cluster(self, name):
        return self.clusters[name]

    def addon(self, cluster, name):
        """The ManagedClusterAddOn."""
        return self.hub.find(f"{ADDONS.format(cluster)}/{name}")

    def addon_condition(self, cluster, name, kind):
        found = self.addon(cluster, name) or {}
        conditions = found.get("status", {}).get("conditions", [])
        return next((c["status"] for c in conditions if c["type"] == kind), None)

    def wait_registered(self, cluster, addon):
        """Until the add-on has its credentials; returns the Secret."""
        namespace = wait_until(
            lambda: self.addon(cluster, addon)["status"]["namespace"], f"{addon} has a namespace in {cluster}", LONG
        )
        path = f"api/v1/namespaces/{namespace}/secrets/{addon}-hub-kubeconfig"
        return wait_until(lambda: self.cluster(cluster).find(path), f"{addon} has credentials in {cluster}", LONG)


def join(hub, name, managed, folder, stack, for_addons):
    """Registers a cluster, as an import does: the hub's admin makes the ManagedCluster. The agent would make it as well, but no
    longer tries once it has its certificate, which comes first where the machine is busy."""
    hub.call("POST", CLUSTERS, {**MANAGED_CLUSTER, "metadata": {"name": name}})
    grant(managed, WORK_AGENT, *WORK_AGENT_ROLES)
    bind(managed, WORK_AGENT, "admin")
    aggregate(managed)
    stack.enter_context(ocm.controller_manager(managed))
    credentials = pathlib.Path(folder) / name / "hub-kubeconfig"
    credentials.mkdir(parents=True)
    agent = stack.enter_context(ocm.registration_agent(hub, managed, name, credentials.parent, for_addons))

    def is_registered():
        agent.check_alive()
        return (credentials / "kubeconfig").exists()

    wait_until(is_registered, f"{name} is registered", LONG)
    stack.enter_context(ocm.work_agent(hub, managed, name, credentials / "kubeconfig"))


def is_available(hub, name):
    """Its agent may be registered before the hub has the cluster."""
    listed = {c["metadata"]["name"]: c for c in hub.call("GET", CLUSTERS)["items"]}
    conditions = listed.get(name, {}).get("status", {}).get("conditions", [])
    return any(c["type"] == "ManagedClusterConditionAvailable" and c["status"] == "True" for c in conditions)


@contextlib.contextmanager
def running_fleet(*names, credentials=ocm.CERTIFICATES, on_hub=contextlib.nullcontext):
    """A hub without our CRDs, and registered clusters of these names, whose add-ons get such credentials for the hub.
    on_hub(hub): what else runs there."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        servers = [running_kube("ocm") for _ in ("hub", *names)]
        with concurrent.futures.ThreadPoolExecutor() as several:
            hub, *managed = several.map(stack.enter_context, servers)
            for of_hub in (on_hub, ocm.controller_manager, ocm.registration_controller, ocm.placement_controller, ocm.addon_manager):
                stack.enter_context(of_hub(hub))
            clusters = dict(zip(names, managed, strict=True))
            list(several.map(lambda name: join(hub, name, clusters[name], folder, stack, credentials), names))
        for name in names:
            wait_until(lambda name=name: is_available(hub, name), f"{name} is available", LONG)
        yield Fleet(hub, clusters, credentials)
