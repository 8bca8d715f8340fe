#!/usr/bin/python3
"""Monitors follow how the endpoints are secured: what Prometheus is told, what the program is given, and where its own rights are."""

import yaml

from chart import check, find, on_clusters, report, template

TOKEN_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/token"
FILES = {"cert_file": "/etc/dynamic-scoring/tls/tls.crt", "key_file": "/etc/dynamic-scoring/tls/tls.key"}
SERVER = {
    "controller": "dynamic-scoring-framework-controller.hub.svc",
    "optimizer": "dynamic-scoring-framework-mcp.hub.svc",
    "agent": "dynamic-scoring-agent-service.dynamic-scoring.svc",
}
TLS = {"tls": {"secretName": "web-tls"}}
KUBERNETES = {"kubernetesAuth": {"enabled": True}}
AUTHORIZATION = {"authorization": {"credentials": {"name": "scrape", "key": "token"}}}


def verified(part, **ca):
    return {"scheme": "https", "tlsConfig": {"serverName": SERVER[part], "ca": ca}}


def by_secret(part):
    return verified(part, secret={"name": "web-tls", "key": "ca.crt"})


def by_service_ca(part):
    return verified(part, configMap={"name": "openshift-service-ca.crt", "key": "service-ca.crt"})


# Values of `web`, those of a monitor's endpoint, and the endpoint that comes of both; a function gets the part's name.
ENDPOINTS = [
    ({}, {}, {}),
    ({}, {"interval": "15s"}, {"interval": "15s"}),
    (TLS, {"interval": "15s"}, lambda part: {"interval": "15s", **by_secret(part)}),
    (TLS, {"tlsConfig": {"insecureSkipVerify": True}}, {"scheme": "https", "tlsConfig": {"insecureSkipVerify": True}}),
    ({"tls": {"servingCert": True}}, {}, by_service_ca),
    (KUBERNETES, {}, {"bearerTokenFile": TOKEN_FILE}),
    (KUBERNETES, AUTHORIZATION, AUTHORIZATION),
    ({**TLS, **KUBERNETES}, {}, lambda part: {"bearerTokenFile": TOKEN_FILE, **by_secret(part)}),
]


def objects_of(part, web, **more):
    """Those of one part: of the controller or the optimizer on the hub, of the agent on a cluster."""
    enabled = {"enabled": True} if part == "optimizer" else {}
    objects = template({part: {"web": web, **more, **enabled}}, namespace="hub")
    if part == "agent":
        return on_clusters(objects)
    return [o for o in objects if o["metadata"]["labels"]["app.kubernetes.io/component"] == part]


def check_monitors():
    for part in SERVER:
        for web, given, wanted in ENDPOINTS:
            if part == "optimizer" and "kubernetesAuth" not in web:  # only port-forward reaches it
                continue
            objects = objects_of(part, web, serviceMonitor={"enabled": True, "endpoint": given})
            found = find(objects, "ServiceMonitor")["spec"]["endpoints"]
            wanted = [{"port": "http-metrics", **(wanted(part) if callable(wanted) else wanted)}]
            check(found == wanted, f"{part}.web {web}, endpoint {given}: {found} instead of {wanted}")
    objects = objects_of("agent", {**TLS, **KUBERNETES}, podMonitor={"enabled": True, "endpoint": AUTHORIZATION})
    found = find(objects, "PodMonitor")["spec"]["podMetricsEndpoints"]
    check(found == [{"port": "http-metrics", **by_secret("agent"), **AUTHORIZATION}], f"the PodMonitor's endpoint: {found}")


def pod_of(objects):
    return find(objects, "Deployment")["spec"]["template"]["spec"]


def check_programs():
    """The flags, and where the files are."""
    for part in SERVER:
        web = {**TLS, "config": {"rate_limit": {"burst": 20}}, "kubernetesAuth": {"enabled": True, "cacheTtl": "1m"}}
        objects = objects_of(part, web)
        secret = next(o for o in objects if o["kind"] == "Secret")
        wanted = {"rate_limit": {"burst": 20}, "tls_server_config": FILES}
        check(yaml.safe_load(secret["stringData"]["web.yaml"]) == wanted, f"{part}: the web configuration is {secret}")
        pod = pod_of(objects)
        flags = [f for f in pod["containers"][0]["args"] if f.startswith("--web.") and "listen" not in f]
        config, *others = flags
        check(others == ["--web.kubernetes-auth", "--web.kubernetes-auth.cache-ttl=1m"], f"{part}: {others}")
        folders = {m["mountPath"]: m["name"] for m in pod["containers"][0]["volumeMounts"]}
        secrets = {v["name"]: v["secret"]["secretName"] for v in pod["volumes"] if "secret" in v}
        check(config == "--web.config.file=/etc/dynamic-scoring/web/web.yaml", f"{part}: {config}")
        check(secrets[folders["/etc/dynamic-scoring/web"]] == secret["metadata"]["name"], f"{part}: {secrets}")
        check(secrets[folders["/etc/dynamic-scoring/tls"]] == "web-tls", f"{part}: {secrets}")
        own = objects_of(part, {"configSecret": "own"})
        check("Secret" not in [o["kind"] for o in own], f"{part}: a Secret beside the user's")
        check([v["secret"]["secretName"] for v in pod_of(own)["volumes"] if v["name"] == "web"] == ["own"], f"{part}: own")


def check_serving_certificates():
    for part in SERVER:
        web = {"tls": {"servingCert": True}, **(KUBERNETES if part == "optimizer" else {})}
        objects = objects_of(part, web, service={"annotations": {"a": "b"}})
        annotations = next(o for o in objects if o["kind"] == "Service")["metadata"]["annotations"]
        secret = annotations.pop("service.beta.openshift.io/serving-cert-secret-name")
        mounted = [v["secret"]["secretName"] for v in pod_of(objects)["volumes"] if v["name"] == "tls"]
        check(mounted == [secret] and annotations == {"a": "b"}, f"{part}: {secret} is mounted as {mounted}")


def check_rights():
    """Reviews only where they are needed, and readers only if there are some."""
    reader = {"kind": "ServiceAccount", "name": "prometheus", "namespace": "monitoring"}
    for part in SERVER:
        open_to_all = str(objects_of(part, {}))
        check("reviews" not in open_to_all and "nonResourceURLs" not in open_to_all, f"{part}: rights that nobody needs")
        objects = objects_of(part, {"kubernetesAuth": {"enabled": True, "readers": [reader]}})
        roles = {o["metadata"]["name"]: o["rules"] for o in objects if o["kind"] == "ClusterRole"}
        paths = {name: rules[0]["nonResourceURLs"] for name, rules in roles.items() if "nonResourceURLs" in rules[0]}
        metrics = next(name for name in paths if name.endswith("-metrics-reader"))
        wanted = [["/metrics"], *([["/optimize"]] if part == "optimizer" else []), ["/status"]]
        check(sorted(paths.values()) == wanted, f"{part}: {paths}")
        bound = [o["subjects"] for o in objects if o["kind"] == "ClusterRoleBinding" and o["roleRef"]["name"] == metrics]
        check(bound == [[reader]], f"{part}: {bound} may read /metrics")


# Values of the optimizer with which it can tell who asks.
AUTHENTICATED = [
    {"tokenSecret": {"name": "t"}},
    {"web": KUBERNETES},
    {"web": {"configSecret": "web"}},
    {"web": {"config": {"basic_auth_users": {"a": "$2y$10$B5NeSfe.M69HwzNCV0e6JeSu2FDkOsj20tnYG3sq1mQt2fDKlxmZW"}}}},
    {"web": {**TLS, "config": {"tls_server_config": {"client_auth_type": "RequireAndVerifyClientCert"}}}},
]


def check_reach_of_the_optimizer():
    """Whoever reaches it may plan and apply: without authentication that is port-forward, which connects to the loopback address."""
    for more in ({}, {"web": TLS}, {"web": {"config": {"tls_server_config": {"client_auth_type": "RequestClientCert"}}}}, *AUTHENTICATED):
        objects = objects_of("optimizer", **{"web": {}, **more})
        flags, served = pod_of(objects)["containers"][0]["args"], "Service" in [o["kind"] for o in objects]
        address = ":8338" if more in AUTHENTICATED else "127.0.0.1:8338"
        check(f"--web.listen-address={address}" in flags, f"optimizer with {more}: {flags}")
        check(served == (more in AUTHENTICATED), f"optimizer with {more}: {'a' if served else 'no'} Service")
    pod = pod_of(objects_of("optimizer", {}, tokenSecret={"name": "assistants", "key": "bearer"}))
    mounts = {m["mountPath"]: m["name"] for m in pod["containers"][0]["volumeMounts"]}
    secrets = {v["name"]: v["secret"]["secretName"] for v in pod["volumes"]}
    check("--token-file=/etc/dynamic-scoring/token/bearer" in pod["containers"][0]["args"], f"optimizer: {pod}")
    check(secrets[mounts["/etc/dynamic-scoring/token"]] == "assistants", f"optimizer: {secrets}")


def check_writes_of_the_optimizer():
    """Only in the namespaces that its flags name."""
    for namespaces in ([], ["default"], ["a", "b"]):
        objects = objects_of("optimizer", {}, writeNamespaces=namespaces)
        flags = [f for f in pod_of(objects)["containers"][0]["args"] if f.startswith("--write")]
        check(flags == [f"--write-namespace={n}" for n in namespaces], f"optimizer: {flags}")
        for kind in ("Role", "RoleBinding"):
            found = [o["metadata"]["namespace"] for o in objects if o["kind"] == kind]
            check(found == namespaces, f"optimizer: a {kind} in {found} instead of {namespaces}")
        verbs = {v for o in objects if o["kind"] == "ClusterRole" for r in o["rules"] for v in r["verbs"]}
        check(verbs <= {"get", "list", "watch"}, f"optimizer: {verbs} everywhere")


def main():
    check_monitors()
    check_programs()
    check_serving_certificates()
    check_rights()
    check_reach_of_the_optimizer()
    check_writes_of_the_optimizer()
    report()


if __name__ == "__main__":
    main()
