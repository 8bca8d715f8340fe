"""The rights that Open Cluster Management gives to its own programs, where they limit what a chart may hold: those of the add-on manager
on the hub and of the work agent on a managed cluster, as the tested release's own manifests have them. The work agent also
has those of Kubernetes' ClusterRole `admin`, and of all ClusterRoles with a certain label."""

import functools
import pathlib
import re

import yaml

from lib.kube import go_crds

ADDON_MANAGER = ("open-cluster-management-hub", "addon-manager-controller-sa")
WORK_AGENT = ("open-cluster-management-agent", "klusterlet-work-sa")
# The ends of their ClusterRoles' names, which begin with the name of an installation.
ADDON_MANAGER_ROLES = ("-addon-manager:controller",)
WORK_AGENT_ROLES = ("-work:agent", "-work:execution")

RBAC = "apis/rbac.authorization.k8s.io/v1"
AGGREGATED = "open-cluster-management:klusterlet-work:aggregate"
AGGREGATE = {"open-cluster-management.io/aggregate-to-work": "true"}


def read_manifest(file):
    """An object of the release, which is a template of Go: without what depends on an installation."""
    lines = [line for line in file.read_text().splitlines() if not re.match(r'\s*"?\{\{', line)]
    return yaml.safe_load(re.sub(r'"?\{\{[^}]*\}\}"?', "x", "\n".join(lines)))


@functools.cache
def cluster_roles():
    """{the end of a name: rules} of the release's ClusterRoles."""
    folder = pathlib.Path(go_crds("ocm-manifests"))
    objects = [read_manifest(file) for file in folder.rglob("*clusterrole*.yaml")]
    return {o["metadata"]["name"]: o["rules"] for o in objects if o["kind"] == "ClusterRole" and "rules" in o}


def rules_of(*ends):
    """The rules of the release's ClusterRoles whose names end so, each of which there is."""
    found = {end: [rules for name, rules in cluster_roles().items() if name.endswith(end)] for end in ends}
    assert all(len(rules) == 1 for rules in found.values()), (found, list(cluster_roles()))
    return [rule for (rules,) in found.values() for rule in rules]


def bind(kube, account, role):
    namespace, name = account
    subject = {"kind": "ServiceAccount", "namespace": namespace, "name": name}
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    kube.apply(f"{RBAC}/clusterrolebindings", f"{name}-{role}", {"roleRef": ref, "subjects": [subject]})


def grant(kube, account, *ends):
    """Gives the account the rights of the release's ClusterRoles whose names end so."""
    namespace, name = account
    kube.apply("api/v1/namespaces", namespace, {})
    kube.apply(f"api/v1/namespaces/{namespace}/serviceaccounts", name, {})
    kube.apply(f"{RBAC}/clusterroles", name, {"rules": rules_of(*ends)})
    bind(kube, account, name)


def aggregate(kube):
    kube.apply(f"{RBAC}/clusterroles", AGGREGATED, {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": AGGREGATE}]}})
    bind(kube, WORK_AGENT, AGGREGATED)
