#!/usr/bin/python3
"""Checks which connections the chart's NetworkPolicies let through, by the semantics of NetworkPolicy: alone, and beside a policy of
the namespace's owner that denies everything. No network plugin is needed: the rendered objects are judged."""

import ipaddress

from chart import check, identity, on_clusters, report, template

HUB, SPOKE = "open-cluster-management", "dynamic-scoring"
DENY_ALL = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
PARTS = ("controller", "optimizer", "agent")
ON = {
    **{part: {"networkPolicy": {"enabled": True}} for part in PARTS},
    "policyWatcher": {"enabled": True},
    "samples": {"mean": {"enabled": True, "nodePort": 30007}, "static": {"enabled": True}, "llm": {"enabled": True}},
}
ON["optimizer"].update(enabled=True, tokenSecret={"name": "t"})
ON["agent"]["otlp"] = {"enabled": True}
OFF = {**ON, **{part: {**ON[part], "networkPolicy": {"enabled": False}} for part in PARTS}}


def pod(namespace, **labels):
    return {"namespace": namespace, "labels": labels}


PROMETHEUS = pod("monitoring", app="prometheus")
OUTSIDE = {"ip": "203.0.113.7"}  # also a pod on its node's network, which policies only know by its address
SENDER = pod("shop", app="checkout")

# ---- The semantics ----


def selects(selector, labels):
    """Only matchLabels are in use here; another selector must not pass for one that selects everything."""
    assert set(selector) <= {"matchLabels"}, selector
    return selector.get("matchLabels", {}).items() <= labels.items()


def peer_matches(rule, peer):
    if "ipBlock" in rule:
        assert set(rule["ipBlock"]) == {"cidr"}
        return "ip" in peer and ipaddress.ip_address(peer["ip"]) in ipaddress.ip_network(rule["ipBlock"]["cidr"])
    if "ip" in peer:
        return False
    assert "namespaceSelector" in rule, "a podSelector alone is for the policy's own namespace: not in use"
    namespace = {"kubernetes.io/metadata.name": peer["namespace"]}
    return selects(rule["namespaceSelector"], namespace) and selects(rule.get("podSelector", {}), peer["labels"])


def rule_matches(rule, side, peer, port, protocol):
    """An absent list of peers or ports matches all of them."""
    ports = [(p.get("protocol", "TCP"), p["port"]) for p in rule.get("ports", [])]
    return (not rule.get(side) or any(peer_matches(p, peer) for p in rule[side])) and (not ports or (protocol, port) in ports)


def allows(policies, direction, subject, peer, port, protocol="TCP"):
    """Without a policy for the pod in this direction everything is let through; several add up."""
    of_pod = [p for p in policies if selects(p["podSelector"], subject["labels"]) and direction in p["policyTypes"]]
    rules = [rule for p in of_pod for rule in p.get(direction.lower()) or []]
    side = "from" if direction == "Ingress" else "to"
    return not of_pod or any(rule_matches(rule, side, peer, port, protocol) for rule in rules)


# ---- The chart's pods and policies ----


class Cluster:
    """The hub, or a managed cluster."""

    def __init__(self, objects, namespace, deny_all=False):
        self.objects, self.namespace = objects, namespace
        mine = [o for o in objects if o["metadata"].get("namespace") == namespace]
        self.policies = [o["spec"] for o in mine if o["kind"] == "NetworkPolicy"] + [DENY_ALL] * deny_all

    def pod(self, name):
        for o in self.objects:
            if o["kind"] in ("Deployment", "Pod") and o["metadata"]["name"] == name:
                template_of = o["spec"]["template"] if o["kind"] == "Deployment" else o
                return {"namespace": self.namespace, "labels": template_of["metadata"]["labels"]}
        raise KeyError(name)


def clusters(values, deny_all):
    objects = template(values, namespace=HUB)
    return {"hub": Cluster(objects, HUB, deny_all), "spoke": Cluster(on_clusters(objects), SPOKE, deny_all)}


CONTROLLER, OPTIMIZER = ("hub", "dynamic-scoring-framework-controller"), ("hub", "dynamic-scoring-framework-mcp")
TEST = ("hub", "dynamic-scoring-framework-test")
AGENT, WATCHER = ("spoke", "dynamic-scoring-agent"), ("spoke", "policy-watcher")
MEAN, STATIC, LLM = ("spoke", "sample-scorer"), ("spoke", "static-scorer"), ("spoke", "llm-forecast-scorer")
ANY = pod("elsewhere", app="anything")

# Values beside ON; direction; the chart's pod; the peer: another of them, or as above; port; whether it is let through.
FROM_MONITORING = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
FROM_OUTSIDE = [{"ipBlock": {"cidr": "203.0.113.0/24"}}]
FLOWS = [
    ("Prometheus in the cluster", {}, "Ingress", CONTROLLER, PROMETHEUS, 8080, True),
    ("Prometheus in the cluster", {}, "Ingress", AGENT, PROMETHEUS, 8080, True),
    ("Prometheus in the cluster", {}, "Ingress", WATCHER, PROMETHEUS, 8080, True),
    ("Prometheus in the cluster", {}, "Ingress", OPTIMIZER, PROMETHEUS, 8338, True),
    ("Prometheus outside", {}, "Ingress", AGENT, OUTSIDE, 8080, False),
    ("Prometheus outside", {"from": FROM_OUTSIDE}, "Ingress", AGENT, OUTSIDE, 8080, True),
    ("Prometheus outside", {"from": FROM_OUTSIDE}, "Ingress", CONTROLLER, OUTSIDE, 8080, True),
    ("Prometheus outside", {"from": FROM_OUTSIDE}, "Ingress", WATCHER, OUTSIDE, 8080, True),
    ("another namespace", {"from": FROM_MONITORING}, "Ingress", AGENT, ANY, 8080, False),
    ("another namespace", {"from": FROM_MONITORING}, "Ingress", AGENT, PROMETHEUS, 8080, True),
    ("a port that is not served", {}, "Ingress", AGENT, PROMETHEUS, 22, False),
    ("helm test", {}, "Ingress", CONTROLLER, TEST, 8081, True),
    ("helm test", {"from": FROM_MONITORING}, "Ingress", CONTROLLER, TEST, 8081, True),
    ("helm test", {"from": FROM_MONITORING}, "Ingress", AGENT, TEST, 8080, True),
    ("helm test", {"from": FROM_MONITORING}, "Ingress", AGENT, TEST, 8081, True),
    ("helm test", {}, "Egress", TEST, CONTROLLER, 8081, True),
    ("helm test", {}, "Egress", TEST, AGENT, 8080, True),
    ("helm test", {}, "Egress", TEST, OUTSIDE, 443, False),
    ("OTLP senders", {}, "Ingress", AGENT, SENDER, 4318, True),
    ("OTLP senders", {"from": FROM_MONITORING}, "Ingress", AGENT, SENDER, 4318, True),
    ("OTLP senders", {"otlpFrom": FROM_MONITORING}, "Ingress", AGENT, SENDER, 4318, False),
    ("OTLP senders", {"otlpFrom": FROM_OUTSIDE}, "Ingress", AGENT, OUTSIDE, 4318, True),
    ("the agent to a sample", {}, "Egress", AGENT, STATIC, 8000, True),
    ("the agent to a sample", {}, "Ingress", STATIC, AGENT, 8000, True),
    ("the agent to a sample", {"from": FROM_MONITORING}, "Ingress", STATIC, AGENT, 8000, True),
    ("the NodePort of a sample", {}, "Ingress", MEAN, OUTSIDE, 8000, True),
    ("a sample without NodePort", {}, "Ingress", STATIC, OUTSIDE, 8000, False),
    ("Skupper's router", {}, "Ingress", STATIC, pod(SPOKE, app="skupper-router"), 8000, True),
    ("a sample to anywhere", {}, "Egress", STATIC, OUTSIDE, 443, False),
    ("a language model", {}, "Egress", LLM, OUTSIDE, 443, True),
    ("a language model", {}, "Egress", LLM, OUTSIDE, 11434, False),
    ("a language model", {"egressPorts": [11434]}, "Egress", LLM, OUTSIDE, 11434, True),
    ("API server", {}, "Egress", CONTROLLER, OUTSIDE, 6443, True),
    ("API server", {}, "Egress", OPTIMIZER, OUTSIDE, 6443, True),
    ("API server", {}, "Egress", AGENT, OUTSIDE, 6443, True),
    ("API server", {}, "Egress", WATCHER, OUTSIDE, 6443, True),
    ("a scoring API", {}, "Egress", AGENT, ANY, 8000, True),
    ("a scoring API", {}, "Egress", AGENT, OUTSIDE, 30007, True),
    ("a scoring API on another port", {}, "Egress", AGENT, ANY, 9999, False),
    ("a scoring API on another port", {"extraEgress": [{"ports": [{"port": 9999}]}]}, "Egress", AGENT, ANY, 9999, True),
    ("a scoring API on another port", {"egressPorts": []}, "Egress", AGENT, ANY, 9999, True),
    ("a scoring API on another port", {"egressPorts": []}, "Egress", CONTROLLER, ANY, 9999, True),
    ("probing /config", {}, "Egress", CONTROLLER, OUTSIDE, 443, True),
    ("Prometheus as a source", {}, "Egress", AGENT, PROMETHEUS, 9090, True),
    ("remote write", {}, "Egress", AGENT, OUTSIDE, 8428, True),
]


def with_policy(more):
    """`otlpFrom` is the agent's alone."""
    parts = {part: dict(ON[part]) for part in PARTS}
    for part, values in parts.items():
        known = {key: value for key, value in more.items() if part == "agent" or key != "otlpFrom"}
        values["networkPolicy"] = {"enabled": True, **known}
    return {**ON, **parts}


def check_flows():
    rendered = {}
    for what, more, direction, subject, peer, port, expected in FLOWS:
        for deny_all in (False, True):
            key = repr(more), deny_all
            if key not in rendered:
                rendered[key] = clusters(with_policy(more), deny_all)
            at = rendered[key]
            other = at[peer[0]].pod(peer[1]) if isinstance(peer, tuple) else peer
            got = allows(at[subject[0]].policies, direction, at[subject[0]].pod(subject[1]), other, port)
            beside = "beside a policy that denies everything" if deny_all else "alone"
            check(got == expected, f"{what}: {direction} of {subject[1]}, port {port}, with {more}, {beside}: allowed is {got}")


def check_names_are_resolved():
    for cluster, names in {"hub": (CONTROLLER, OPTIMIZER, TEST), "spoke": (AGENT, WATCHER, LLM)}.items():
        at = clusters(ON, True)[cluster]
        for _, name in names:
            for protocol in ("UDP", "TCP"):
                got = allows(at.policies, "Egress", at.pod(name), pod("kube-system", app="dns"), 53, protocol)
                check(got, f"{name} cannot ask DNS over {protocol}")


def check_owner_without_policies():
    """Where the namespace's owner denies everything, the chart's policies are needed: this is what they are for."""
    at = clusters(OFF, True)
    for _, _, direction, subject, peer, port, _ in FLOWS:
        other = at[peer[0]].pod(peer[1]) if isinstance(peer, tuple) else peer
        got = allows(at[subject[0]].policies, direction, at[subject[0]].pod(subject[1]), other, port)
        check(not got, f"{subject[1]}: the chart has a policy that was not asked for")


def check_completeness():
    """Each pod of the chart has a policy, and each policy says both directions."""
    for name, cluster in clusters(ON, False).items():
        for o in cluster.objects:
            if o["kind"] == "NetworkPolicy":
                check(o["spec"]["policyTypes"] == ["Ingress", "Egress"], f"{identity(o)}: policyTypes")
                check({"ingress", "egress"} <= set(o["spec"]), f"{identity(o)} leaves out ingress or egress")
            if o["kind"] in ("Deployment", "Pod"):
                labels = cluster.pod(o["metadata"]["name"])["labels"]
                check(any(selects(p["podSelector"], labels) for p in cluster.policies), f"{name}: {identity(o)} has no policy")
    every = clusters(with_policy({"egressPorts": []}), False)["spoke"]
    agents = [o["spec"]["egress"] for o in every.objects if identity(o)[:3:2] == ("NetworkPolicy", "dynamic-scoring-agent")]
    check(agents == [[{}]], f"egress where egressPorts is empty: {agents}")


def main():
    check_flows()
    check_names_are_resolved()
    check_owner_without_policies()
    check_completeness()
    report()


if __name__ == "__main__":
    main()
