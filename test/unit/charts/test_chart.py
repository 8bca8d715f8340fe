#!/usr/bin/python3
"""Checks what Helm makes of the chart: which values are refused and by which message, that each namespace is one value, that two
releases do not collide, that selectors stay, and that charts/manifests is up to date."""

import concurrent.futures
import copy
import re
import subprocess
import tempfile

import yaml

from chart import CHART, CI, HELM, RELEASE, TOP, check, find, helm, identity, notes, on_clusters, report, template, walk

MANIFEST = TOP / "charts" / "manifests" / "install.yaml"
CONTROLLER_SELECTOR = {
    "app.kubernetes.io/name": RELEASE,
    "app.kubernetes.io/instance": RELEASE,
    "app.kubernetes.io/component": "controller",
}
OPTIMIZER_SELECTOR = {"app": "dynamic-scoring-framework-mcp"}  # which the framework's documents use
WATCHER_SELECTOR = {"app": "policy-watcher"}  # that of the documents' manifest
AGENT_SELECTOR = {"app": "dynamic-scoring-agent"}  # that of the reference's Deployment
TWO_ON_ONE_DISK = {"replicas": 2, "storage": {"type": "persistentVolumeClaim"}}
USERS = {"basic_auth_users": {"prometheus": "$2y$10$B5NeSfe.M69HwzNCV0e6JeSu2FDkOsj20tnYG3sq1mQt2fDKlxmZW"}}
# Values, and a part of the message that refuses them.
REFUSED = [
    ({"replicas": 2}, "additional properties 'replicas' not allowed"),
    ({"agent": {"replica": 2}}, "at '/agent': additional properties 'replica' not allowed"),
    ({"agent": {"replicas": 0}}, "at '/agent/replicas': minimum: got 0, want 1"),
    ({"controller": {"replicas": "two"}}, "at '/controller/replicas': got string, want integer"),
    ({"openshift": "yes"}, "at '/openshift': value must be one of 'auto', true, false"),
    ({"image": {"digest": "latest"}}, "at '/image/digest': 'latest' does not match pattern"),
    ({"image": {"pullPolicy": "Sometimes"}}, "at '/image/pullPolicy': value must be one of"),
    ({"imagePullSecrets": [{"secret": "a"}]}, "/imagePullSecrets/0"),
    ({"spokeSetting": {"namespace": ""}}, "at '/spokeSetting/namespace': '' does not match pattern"),
    ({"hubSetting": {"namespace": "A_b"}}, "at '/hubSetting/namespace': 'A_b' does not match pattern"),
    ({"hubSetting": {"namespace": "a"}, "namespaceOverride": "b"}, "hubSetting.namespace (a) and namespaceOverride (b)"),
    ({"log": {"level": "trace"}}, "at '/log/level': value must be one of 'debug', 'info', 'warn', 'error'"),
    ({"controller": {"service": {"port": 70000}}}, "at '/controller/service/port': maximum: got 70,000, want 65,535"),
    ({"controller": {"configAuthSecrets": "api"}}, "at '/controller/configAuthSecrets': got string, want array"),
    ({"agent": {"clusterSets": []}}, "at '/agent/clusterSets': minItems: got 0, want 1"),
    ({"agent": {"limits": {"memory": "128Mi"}}}, "at '/agent/limits/memory': '128Mi' does not match pattern"),
    ({"agent": {"limits": {"roundtime": "5m"}}}, "at '/agent/limits': additional properties 'roundtime' not allowed"),
    ({"agent": {"storage": {"type": "pvc"}}}, "at '/agent/storage/type': value must be one of"),
    ({"agent": {"remoteWrite": [{"name": "hub"}]}}, "at '/agent/remoteWrite/0': missing property 'url'"),
    ({"agent": {"remoteWrite": [{"url": "vm-hub:8428"}]}}, "at '/agent/remoteWrite/0/url': 'vm-hub:8428' does not match"),
    ({"agent": {"remoteWrite": [{"url": "http://a", "remoteTimeout": "5s"}]}}, "additional properties 'remoteTimeout'"),
    ({"agent": {"remoteWrite": [{"url": "http://a", "remote_timeout": "5 s"}]}}, "/agent/remoteWrite/0/remote_timeout'"),
    (
        {"agent": {"remoteWrite": [{"url": "http://a"}, {"url": "http://b", "basic_auth": {"username": "u", "password": "p"}}]}},
        "agent.remoteWrite[1].basic_auth.password would be readable in the AddOnTemplate; use password_file",
    ),
    (
        {"agent": {"remoteWrite": [{"url": "http://a", "authorization": {"credentials": "t"}}]}},
        "agent.remoteWrite[0].authorization.credentials would be readable in the AddOnTemplate; use credentials_file",
    ),
    (
        {"agent": {"remoteWrite": [{"url": "http://a", "name": "x"}, {"url": "http://b", "name": "x"}]}},
        'agent.remoteWrite[1].name: "x" is also the name of agent.remoteWrite[0]',
    ),
    ({"samples": {"median": {"enabled": True}}}, "at '/samples': additional properties 'median' not allowed"),
    ({"samples": {"power": {"enabled": False}}}, "samples.power: the model power is no longer part of the program; run a scoring API of"),
    ({"samples": {"mean": {"nodePort": 70000}}}, "at '/samples/mean/nodePort': maximum: got 70,000, want 65,535"),
    ({"agent": {"otlp": {"k8sLabels": "yes"}}}, "at '/agent/otlp/k8sLabels': got string, want boolean"),
    (
        {"agent": {"otlp": {"enabled": True, "prometheus": {"enabled": True}}}},
        "agent.otlp.enabled and agent.otlp.prometheus.enabled: scorers query either the agent or its Prometheus",
    ),
    ({"agent": TWO_ON_ONE_DISK}, "agent.replicas is more than 1: agent.storage.accessModes must have ReadWriteMany"),
    (
        {"agent": {"serviceMonitor": {"enabled": True}, "podMonitor": {"enabled": True}}},
        "agent.serviceMonitor.enabled and agent.podMonitor.enabled: Prometheus would scrape each agent twice",
    ),
    ({"prometheusRule": {"rules": {"AgentDwn": {}}}}, "prometheusRule.rules.AgentDwn: there is no such rule; there are "),
    ({"prometheusRule": {"rules": {"AgentDown": {"fro": "5m"}}}}, "at '/prometheusRule/rules/AgentDown': additional properties 'fro'"),
    ({"prometheusRule": {"rules": {"AgentDown": {"for": "5 m"}}}}, "at '/prometheusRule/rules/AgentDown/for': '5 m' does not match"),
    ({"prometheusRule": {"kind": "Rule"}}, "at '/prometheusRule/kind': value must be one of 'PrometheusRule', 'VMRule'"),
    ({"prometheusRule": {"clusters": ["agents"]}}, "at '/prometheusRule/clusters/0': value must be one of 'agent', 'hub', 'recording'"),
    ({"clusterLabel": "k8s-cluster"}, "at '/clusterLabel': 'k8s-cluster' does not match pattern"),
    ({"controller": {"web": {"config": {"tls": {}}}}}, "at '/controller/web/config': additional properties 'tls' not allowed"),
    (
        {"controller": {"web": {"config": USERS, "configSecret": "web"}}},
        "controller.web.config and controller.web.configSecret: there is one web configuration",
    ),
    (
        {"controller": {"web": {"config": USERS, "kubernetesAuth": {"enabled": True}}}},
        "controller.web.config.basic_auth_users and controller.web.kubernetesAuth.enabled: enable one of them",
    ),
    (
        {"controller": {"web": {"config": USERS}, "serviceMonitor": {"enabled": True}}},
        "controller.serviceMonitor.endpoint.basicAuth is not set, but controller.web.config.basic_auth_users is",
    ),
    (
        {"controller": {"web": {"config": {"tls_server_config": {"cert": "x"}}}, "serviceMonitor": {"enabled": True}}},
        "controller.serviceMonitor.endpoint.tlsConfig is not set, and controller.web.tls.secretName neither",
    ),
    (
        {"agent": {"web": {"kubernetesAuth": {"enabled": True}}, "podMonitor": {"enabled": True}}},
        "agent.podMonitor.endpoint.authorization is not set: PodMonitors cannot name the file of Prometheus' token",
    ),
    (
        {"agent": {"web": {"config": USERS}}},
        "agent.web.config.basic_auth_users would be readable in the AddOnTemplate; use agent.web.configSecret",
    ),
    ({"optimizer": {"writeNamespaces": ["a", "B"]}}, "at '/optimizer/writeNamespaces/1': 'B' does not match pattern"),
    ({"policyWatcher": {"claim": "A_b"}}, "at '/policyWatcher/claim': 'A_b' does not match pattern"),
    ({"policyWatcher": {"stableDuration": "30"}}, "at '/policyWatcher/stableDuration': '30' does not match pattern"),
    ({"policyWatcher": {"stableDuration": 30}}, "at '/policyWatcher/stableDuration': got number, want string"),
    ({"policyWatcher": {"stableDuration": "1d"}}, "at '/policyWatcher/stableDuration': '1d' does not match pattern"),
    ({"controller": {"web": {"kubernetesAuth": {"timeout": "1w"}}}}, "/kubernetesAuth/timeout': '1w' does not match pattern"),
    ({"agent": {"otlp": {"prometheus": {"retention": {"time": 3}}}}}, "/retention/time': maximum: got 3, want 0"),
    ({"fullnameOverride": "my.scoring"}, "my.scoring: the names of Services would begin with this"),
    ({"fullnameOverride": "1-scoring"}, "1-scoring: the names of Services would begin with this"),
    ({"controller": {"service": {"port": 8081}}}, "controller.service.port: 8081 is the port of the Service's probes"),
    ({"agent": {"service": {"port": 8081}}}, "agent.service.port: 8081 is the port of the Service's probes or of OTLP"),
    ({"agent": {"service": {"port": 4318}, "otlp": {"enabled": True}}}, "agent.service.port: 4318 is the port of the Service's probes"),
    ({"optimizer": {"image": {"tag": "2"}}}, "optimizer.image: the optimizer no longer has an image of its own; remove this value, and set image.registry"),
    ({"optimizer": {"deadline": "10 s"}}, "at '/optimizer/deadline': '10 s' does not match pattern"),
    ({"optimizer": {"deadline": 10}}, "at '/optimizer/deadline': got number, want string"),
    (
        {"optimizer": {"enabled": True, "serviceMonitor": {"enabled": True}}},
        "optimizer.serviceMonitor.enabled: without authentication the optimizer listens on its pod's loopback address",
    ),
    (
        {"optimizer": {"enabled": True, "web": {"tls": {"servingCert": True}}}},
        "optimizer.web.tls.servingCert: without authentication there is no Service",
    ),
    (
        {"optimizer": {"enabled": True, "tokenSecret": {"name": "t"}, "serviceMonitor": {"enabled": True}}},
        "optimizer.serviceMonitor.endpoint.authorization is not set, but optimizer.tokenSecret is",
    ),
    (
        {"optimizer": {"enabled": True, "tokenSecret": {"name": "t"}, "web": {"kubernetesAuth": {"enabled": True}}}},
        "optimizer.tokenSecret and optimizer.web both ask for credentials; set one of them",
    ),
]

OPEN_BRACES = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"a": "x {{ y", "b": "}}"}}
REFUSED += [
    (
        {"agent": {"extraManifests": [{"kind": "A"}, OPEN_BRACES]}},
        'agent.extraManifests[1]: the {{ in "x {{ y" has no }}: OCM takes it for the beginning of a variable',
    ),
    ({"agent": {"extraManifests": [{"kind": "A", "a{{b": "}}"}]}}, 'agent.extraManifests[0]: the {{ in "a{{b" has no }}'),
    ({"agent": {"extraEnv": [{"name": "A", "value": "{{B}} {{"}]}}, 'agent.extraEnv: the {{ in "{{B}} {{" has no }}'),
    ({"samples": {"llm": {"extraArgs": ["--a={{"]}}}, "samples: the {{ in "),
]
OWN_PLACEMENT = "agent.placement.existing is set, and that Placement decides"
ACM = {"name": "global", "namespace": "open-cluster-management-global-set"}
REFUSED += [
    ({"agent": {"placement": {"existing": {"name": "global"}}}}, "agent.placement.existing: set both name and namespace, or neither"),
    ({"agent": {"placement": {"existing": {"namespace": "a"}}}}, "agent.placement.existing: set both name and namespace, or neither"),
    ({"agent": {"placement": {"existing": {"name": "A"}}}}, "at '/agent/placement/existing/name': 'A' does not match pattern"),
    ({"agent": {"clusterSets": ["default"], "placement": {"existing": ACM}}}, f"agent.clusterSets: {OWN_PLACEMENT}"),
    ({"agent": {"placement": {"existing": ACM, "predicates": [{}]}}}, f"agent.placement.predicates: {OWN_PLACEMENT}"),
    ({"agent": {"placement": {"existing": ACM, "tolerations": []}}}, f"agent.placement.tolerations: {OWN_PLACEMENT}"),
]

# ---- Checks ----


def check_refusals():
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda case: helm("template", RELEASE, CHART, values=case[0]), REFUSED)
        for (values, message), done in zip(REFUSED, results):
            check(done.returncode, f"values {values} are accepted")
            check(message in done.stderr, f"values {values}: no `{message}` in:\n{done.stderr}")


def check_objects(name, values):
    done = helm("lint", "--strict", CHART, values=values)
    check(done.returncode == 0, f"ci/{name}-values.yaml: {done.stdout}")
    objects = template(values)
    for group in (objects, on_clusters(objects)):
        names = [identity(o) for o in group]
        check(len(names) == len(set(names)), f"ci/{name}-values.yaml: an object is there twice: {names}")
    both = {identity(o) for o in objects} & {identity(o) for o in on_clusters(objects)}
    check(not both, f"ci/{name}-values.yaml: on a hub that is a managed cluster itself, these collide: {both}")
    everything = objects + on_clusters(objects)
    for o in everything:
        check(o.get("roleRef", {}).get("name") != "cluster-admin", f"{identity(o)} grants cluster-admin")
        named = re.fullmatch(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?", o["metadata"]["name"])
        check(named, f"ci/{name}-values.yaml: invalid name: {identity(o)}")
    for o in everything:
        if o["kind"] in ("Role", "ClusterRole"):
            check("*" not in [v for _, v in walk(o["rules"])], f"{identity(o)} has a wildcard")
    check_selectors(name, objects)


def check_samples():
    """No plain manifest changes the rights of what the chart has installed."""
    def rights(objects):
        return {identity(o) for o in objects if o["kind"].endswith(("Role", "RoleBinding"))}

    objects = template(CI["full"])
    charts = rights(objects) | rights(on_clusters(objects))
    for file in (CHART.parent / "samples").rglob("*.yaml"):
        shared = charts & rights(o for o in yaml.safe_load_all(file.read_text()) if o and "kind" in o)
        check(not shared, f"{file.relative_to(TOP)} overwrites {shared} of the chart")


def check_selectors(name, objects):
    if name == "own":  # other names
        return
    controller = find(objects, "Deployment")["spec"]["selector"]["matchLabels"]
    check(controller == CONTROLLER_SELECTOR, f"ci/{name}-values.yaml: the controller's selector has changed: {controller}")
    for o in objects:
        if o["kind"] == "Deployment" and o["metadata"]["labels"]["app.kubernetes.io/component"] == "optimizer":
            optimizer = o["spec"]["selector"]["matchLabels"]
            check(optimizer == OPTIMIZER_SELECTOR, f"ci/{name}-values.yaml: the optimizer's selector has changed: {optimizer}")
    for o in on_clusters(objects):
        if o["kind"] == "Deployment" and o["metadata"]["labels"]["app.kubernetes.io/component"] == "agent":
            agent = o["spec"]["selector"]["matchLabels"]
            check(agent == AGENT_SELECTOR, f"ci/{name}-values.yaml: the agent's selector has changed: {agent}")
        if o["kind"] == "Deployment" and o["metadata"]["labels"]["app.kubernetes.io/component"] == "policy-watcher":
            watcher = o["spec"]["selector"]["matchLabels"]
            check(watcher == WATCHER_SELECTOR, f"ci/{name}-values.yaml: the watcher's selector has changed: {watcher}")


def check_namespaces():
    parts = {part: copy.deepcopy(CI["full"][part]) for part in ("agent", "controller", "optimizer")}
    for part in parts.values():
        part["web"]["kubernetesAuth"]["readers"] = []  # in namespaces of their own
    parts["optimizer"]["writeNamespaces"] = ["here"]
    parts["agent"].update(extraManifests=[], addonManager={"namespace": "ocm"})
    values = dict(CI["full"], **parts, spokeSetting={"namespace": "there"})
    by_option = template(values, namespace="here")
    by_value = template(dict(values, hubSetting={"namespace": "here"}), namespace="elsewhere")
    by_override = template(dict(values, namespaceOverride="here"), namespace="elsewhere")
    check(by_option == by_value == by_override, "the namespace on the hub depends on how it is set")
    for o in by_option:
        if o["kind"] != "AddOnTemplate":
            check(o["metadata"].get("namespace", "here") == "here", f"{identity(o)}: not in the hub's namespace")
    for o in on_clusters(by_option):
        check(o["metadata"].get("namespace", "there") == "there", f"{identity(o)}: not in the agent's namespace")
    spelled = re.compile(r"(^|=|\.)(open-cluster-management|dynamic-scoring)(\.svc|:|$)")
    for o in by_option + on_clusters(by_option):
        for key, value in walk(o):
            if key in ("namespace", "agentInstallNamespace", "matchNames"):
                allowed = ("ocm",) if o["metadata"]["name"].endswith("-agent-bind") else ("here", "there")
                check(value in allowed, f"{identity(o)}: {key}: {value}")
            check(not spelled.search(str(value)), f"{identity(o)}: a default namespace is spelled in {key}: {value}")
    arguments = find(by_option, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
    check({"--namespace=here", "--agent-namespace=there"} <= set(arguments), f"the controller's namespaces: {arguments}")
    check(find(on_clusters(by_option), "Namespace")["metadata"]["name"] == "there", "the agent's Namespace has another name")
    shared = template({"spokeSetting": {"namespace": "open-cluster-management-agent-addon"}})
    check("Namespace" not in [o["kind"] for o in on_clusters(shared)], "OCM's namespace of add-ons is owned")


def check_second_release():
    """Both in one namespace. A ManagedClusterSetBinding has the set's name, so that the second release must leave it to the first."""
    first = template(CI["full"])
    other = {"hubSetting": {"skipClusterSetBinding": True}, "extraManifests": [], "policyWatcher": {"enabled": True}}
    second = template({**CI["full"], **other}, release="second")
    both = {identity(o) for o in first} & {identity(o) for o in second}
    check(not both, f"a second release collides on the hub: {both}")
    both = {identity(o) for o in on_clusters(first)} & {identity(o) for o in on_clusters(second)}
    allowed = {("Namespace", None, "dynamic-scoring"), ("Secret", "dynamic-scoring", "api-auth-secret")}
    check(both == allowed, f"a second release collides on the clusters: {both - allowed}")


def label_values(node):
    """Of all labels and selectors, wherever they are."""
    if isinstance(node, list):
        node = dict(enumerate(node))
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        if key in ("labels", "matchLabels") and isinstance(value, dict):
            yield from value.values()
        else:
            yield from label_values(value)


def check_long_names():
    """Names of Services and values of labels have at most 63 characters. Helm's limit of a release's name is 53."""
    with_prometheus = copy.deepcopy(CI["full"])
    with_prometheus["agent"]["otlp"] = {"prometheus": {"enabled": True}}
    for values in ({}, CI["full"], with_prometheus):
        objects = template(values, release="r" * 53)
        for o in [o for o in objects if o["kind"] != "AddOnTemplate"] + on_clusters(objects):
            limit = 63 if o["kind"] == "Service" else 253
            check(len(o["metadata"]["name"]) <= limit, f"a long release name: {identity(o)}")
            for value in label_values(o):
                check(len(value) <= 63, f"a long release name: {identity(o)} has the label {value}")


def check_existing_placement():
    """It is the only one that the add-ons name, and the chart has no Placement or binding beside it."""
    values = {"agent": {"placement": {"existing": ACM}}, "policyWatcher": {"enabled": True}}
    objects = template(values)
    own = [identity(o) for o in objects if o["kind"] in ("Placement", "ManagedClusterSetBinding")]
    check(not own, f"beside an existing Placement: {own}")
    addons = [o for o in objects if o["kind"] == "ClusterManagementAddOn"]
    check(len(addons) == 2, f"{len(addons)} ClusterManagementAddOns, expected the agent's and that of the extras")
    for addon in addons:
        used = [{key: p[key] for key in ("name", "namespace")} for p in addon["spec"]["installStrategy"]["placements"]]
        check(used == [ACM], f"{identity(addon)} uses {used}")
    own = sorted(o["kind"] for o in template() if o["kind"] in ("Placement", "ManagedClusterSetBinding"))
    check(own == ["ManagedClusterSetBinding", "Placement"], f"by default: {own}")
    text = notes(values)
    check("That Placement, open-cluster-management-global-set/global, is not of this chart" in text, f"NOTES: {text}")
    check("kubectl -n open-cluster-management-global-set get placement global" in text, f"NOTES: {text}")


def check_kept_templates():
    """Clusters that a rollout has not reached use the AddOnTemplate of the version before, which Helm would delete."""
    objects = template({"policyWatcher": {"enabled": True}})
    templates = [o for o in objects if o["kind"] == "AddOnTemplate"]
    check(len(templates) == 2, f"{len(templates)} AddOnTemplates, expected the agent's and that of the extras")
    for o in objects:
        kept = (o["metadata"].get("annotations") or {}).get("helm.sh/resource-policy") == "keep"
        check(kept == (o["kind"] == "AddOnTemplate"), f"{identity(o)}: kept by Helm is {kept}")
    closed = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "{{CLUSTER_NAME}}-a"}, "data": {"a": "{ { }} {{X}}"}}
    check(template({"agent": {"extraManifests": [closed]}}), "braces that are closed are refused")
    text = notes()
    for words in ("delete dynamicscoringconfig dynamic-scoring-config && helm", '{"metadata":{"finalizers":null}}', "kubectl get addontemplates"):
        check(words in text, f"NOTES do not have `{words}`")


def check_without_agent():
    """What would run beside the agent is not forgotten without a word."""
    warning = "WARNING: agent.enabled is false, and what is installed beside the agent is not installed either"
    extras = {"policyWatcher": {"enabled": True}}
    absent = {"agent": {"enabled": False}}
    check(warning in notes(absent | extras), "NOTES do not warn of a policy watcher without an agent")
    for values in (absent, extras):
        check(warning not in notes(values), f"NOTES warn with {values}")


def check_openshift():
    for words in (["--set=openshift=true"], ["--api-versions=security.openshift.io/v1"]):
        objects = template({"optimizer": {"enabled": True}}, *words)
        for o in objects + on_clusters(objects):
            fixed = {"runAsUser", "runAsGroup", "fsGroup"} & {key for key, _ in walk(o)}
            check(not fixed, f"{words}: {identity(o)} has {fixed}, which the SCC sets")
    plain = find(template(), "Deployment")["spec"]["template"]["spec"]["securityContext"]
    check(plain["runAsUser"] == 65532, f"the controller's user without OpenShift: {plain}")


def check_images():
    def images(values):
        objects = template(values)
        return [find(group, "Deployment")["spec"]["template"]["spec"]["containers"][0]["image"]
                for group in (objects, on_clusters(objects))]

    version = (TOP / ".version").read_text().strip()
    ours, digest = "open-cluster-management/dynamic-scoring", f"sha256:{'0123456789abcdef' * 4}"
    check(images({}) == [f"quay.io/{ours}:{version}"] * 2, f"default images: {images({})}")
    check(images({"image": {"digest": digest}}) == [f"quay.io/{ours}@{digest}"] * 2, "images by digest")
    check(images({"global": {"imageRegistry": "r.example"}, "image": {"tag": "x"}}) == [f"r.example/{ours}:x"] * 2, "registry")
    optimizer = [o for o in template({"optimizer": {"enabled": True}, "image": {"digest": digest}}) if o["kind"] == "Deployment"][-1]
    image = optimizer["spec"]["template"]["spec"]["containers"][0]["image"]
    check(image == f"quay.io/{ours}@{digest}", f"the optimizer's image is {image}")
    known = [f"quay.io/open-cluster-management/dynamic-scoring-{part}:latest" for part in ("controller", "addon")]
    check(images(CI["reference"]) == known, f"images of the reference's values: {images(CI['reference'])}")


def check_agent_file():
    """Numbers stay whole, and OCM's variables reach it."""
    endpoint = {"url": "http://a", "queue_config": {"max_spool_bytes": 1073741824}, "external_labels": {"c": "{{CLUSTER_NAME}}"}}
    values = {"agent": {"remoteWrite": [endpoint], "limits": {"series": 2000000}}}
    file = find(on_clusters(template(values)), "ConfigMap")["data"]["agent.yaml"]
    check(yaml.safe_load(file) == {"remoteWrite": [endpoint], "limits": {"series": 2000000}}, f"agent.yaml: {file}")


def check_versions():
    version = (TOP / ".version").read_text().strip()
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    check(chart["version"] == chart["appVersion"] == version, "Chart.yaml has another version than .version")


def check_artifact_hub():
    """What Artifact Hub shows: the image that the chart runs, its CRDs, links that lead to files of ours, and entries of the changelog."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    shown = {key.removeprefix("artifacthub.io/"): yaml.safe_load(text) for key, text in chart["annotations"].items()}
    check(shown["license"] == "Apache-2.0" and "Apache License" in (TOP / "LICENSE").read_text(), f"license: {shown['license']}")
    container = find(template({}), "Deployment")["spec"]["template"]["spec"]["containers"][0]
    check([i["image"] for i in shown["images"]] == [container["image"]], f"images: {shown['images']}, the chart runs {container['image']}")
    release = (TOP / ".github" / "workflows" / "release.yml").read_text()
    built = [f"linux/{arch}" for arch in re.findall(r"--arch (\w+)", release)]
    check([i["platforms"] for i in shown["images"]] == [built], f"platforms: {shown['images']}, a release builds {built}")
    crds = [o for o in yaml.safe_load_all(helm("show", "crds", CHART).stdout) if o]
    served = sorted((o["spec"]["names"]["kind"], o["metadata"]["name"], o["spec"]["versions"][-1]["name"]) for o in crds)
    check(sorted((c["kind"], c["name"], c["version"]) for c in shown["crds"]) == served, f"crds: {shown['crds']}, there are {served}")
    ours = f"{chart['sources'][0]}/blob/main/"
    for link in shown["links"]:
        path = link["url"].removeprefix(ours)
        check(link["name"] and link["url"].startswith("https://"), f"links: {link}")
        check(path == link["url"] or (TOP / path).is_file(), f"links: there is no {path}")
    changelog = " ".join((TOP / ".github" / "CHANGELOG.md").read_text().split())
    for change in shown["changes"]:
        check(change["kind"] in ("added", "changed", "deprecated", "removed", "fixed", "security"), f"changes: {change}")
        check(change["description"] in changelog, f"changes: the changelog does not say `{change['description']}`")


def check_crds():
    """Helm does not separate the files, and kubectl would read two documents in one as the last."""
    shown = list(yaml.safe_load_all(helm("show", "crds", CHART).stdout))
    kinds = sorted(o["spec"]["names"]["kind"] for o in shown if o)
    check(kinds == ["DynamicScorer", "DynamicScoringConfig"], f"helm show crds prints {kinds}")


def check_manifest():
    script = [MANIFEST.parent / "render"]
    with tempfile.NamedTemporaryFile("r", suffix=".yaml") as file:
        subprocess.run([*script, file.name], env={"HELM": HELM, "PATH": "/usr/bin:/bin"}, check=True)
        check(file.read() == MANIFEST.read_text(), "charts/manifests/install.yaml is out of date: run charts/manifests/render")
    samples = [CHART.parent / "samples" / "render", "--check"]
    done = subprocess.run(samples, env={"HELM": HELM, "PATH": "/usr/bin:/bin"}, check=False, capture_output=True, text=True)
    check(done.returncode == 0, done.stdout + done.stderr)


def main():
    for name, values in CI.items():
        check_objects(name, values)
    check_samples()
    check_refusals()
    check_namespaces()
    check_second_release()
    check_long_names()
    check_existing_placement()
    check_kept_templates()
    check_without_agent()
    check_openshift()
    check_images()
    check_agent_file()
    check_versions()
    check_artifact_hub()
    check_crds()
    check_manifest()
    report()


if __name__ == "__main__":
    main()
