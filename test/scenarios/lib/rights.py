"""The chart's rights, one verb on one resource at a time, and users who have all of them but one."""

import json
import pathlib
from typing import NamedTuple

from lib.accounts import RBAC, account_subject, token_of
from lib.helm import named, on_clusters, render

CONTROLLER, AGENT = "dynamic-scoring-framework-controller", "dynamic-scoring-agent"


class Right(NamedTuple):
    role: str
    group: str
    resource: str
    names: tuple  # () for all
    verb: str

    def refused(self):
        """What the API server says without it."""
        return f'cannot {self.verb} resource "{self.resource}"'

    def rule(self):
        names = {"resourceNames": list(self.names)} if self.names else {}
        return {"apiGroups": [self.group], "resources": [self.resource], "verbs": [self.verb], **names}

    def __str__(self):
        return f"{self.role}: {self.verb} {self.resource}"


def rights_of(role, rules):
    return [
        Right(role, group, resource, tuple(rule.get("resourceNames", ())), verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


def charts_rights(**values):
    """(those of the controller, those of the agent), each with its role: "everywhere", "namespace", "hub", "cluster"."""
    objects = render(values=values)
    manifests = on_clusters(objects)
    controller = rights_of("everywhere", named(objects, "ClusterRole", CONTROLLER)["rules"])
    controller += rights_of("namespace", named(objects, "Role", CONTROLLER)["rules"])
    agent = rights_of("hub", named(objects, "ClusterRole", AGENT)["rules"])
    agent += rights_of("cluster", named(manifests, "Role")["rules"])
    everywhere = [o for o in manifests if (o["kind"], o["metadata"]["name"]) == ("ClusterRole", f"{AGENT}-reviews")]
    return controller, agent + [right for o in everywhere for right in rights_of("everywhere", o["rules"])]


def grant(kube, role, namespace, account, name, rights):
    """role "everywhere": cluster-wide; else in the namespace. account: (namespace, name) of a ServiceAccount."""
    where = f"{RBAC}/namespaces/{namespace}" if role != "everywhere" else RBAC
    kind = "Role" if role != "everywhere" else "ClusterRole"
    ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name}
    kube.apply(f"{where}/{kind.lower()}s", name, {"rules": [r.rule() for r in rights]})
    kube.apply(f"{where}/{kind.lower()}bindings", name, {"roleRef": ref, "subjects": [account_subject(account)]})


def kubeconfig_of(kube, account, file):
    """Of a ServiceAccount, which is made."""
    server = {"server": f"https://127.0.0.1:{kube.port}", "certificate-authority": str(kube.state / "ca.crt")}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": server}],
        "users": [{"name": "u", "user": {"token": token_of(kube, account)}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u", "namespace": account[0]}}],
        "current-context": "x",
    }
    pathlib.Path(file).write_text(json.dumps(config))
    return file
