"""Values secure /metrics and the pages of controller and agent: with the objects that the chart makes of them, and nothing else, a
Prometheus that does what the ServiceMonitors say gets the metrics; others are told what they lack. Probes stay open."""

import base64
import contextlib
import urllib.parse

import pytest
import yaml

from lib import helm
from lib.accounts import token_of
from lib.client import call
from lib.hub import HUB_NAMESPACE, clean_hub
from lib.kube import CLUSTER, NAMESPACE, go_program
from lib.pod import running_pod
from lib.process import run
from lib.prometheus import running_prometheus
from test_tls_is_verified import make_certificate

READER = {"kind": "ServiceAccount", "name": "secured-prometheus", "namespace": "default"}
WEB = {"tls": {"secretName": "secured-tls"}, "kubernetesAuth": {"enabled": True, "readers": [READER]}}
VALUES = {
    "controller": {"web": WEB, "serviceMonitor": {"enabled": True}},
    "agent": {"web": {**WEB, "config": {"rate_limit": {"interval": "1ms", "burst": 1000}}}, "serviceMonitor": {"enabled": True}},
}
PARTS = {
    "controller": (HUB_NAMESPACE, "dynamic-scoring-framework-controller"),
    "agent": (NAMESPACE, "dynamic-scoring-agent-service"),
}
HUB_SECRET, HUB_FOLDER = "secured-hub-kubeconfig", "/managed/hub-kubeconfig"
UNKNOWN_CA = 60  # exit status of curl
PASSWORD, BCRYPT = "correct horse", "$2b$04$.xX8N1DQw84kxciFRgjufehelfpq7wWZXxH838O66BBIxSmBtI2Mi"
BASIC = {
    "web": {"config": {"basic_auth_users": {"prometheus": BCRYPT}}},
    "serviceMonitor": {
        "enabled": True,
        "endpoint": {"basicAuth": {name: {"name": "scrape", "key": name} for name in ("username", "password")}},
    },
}
NEEDED = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", "Secret", "ConfigMap")


def kubectl(kube, objects, *verb):
    words = (f"--kubeconfig={kube.kubeconfig()}", f"--cache-dir={kube.folder / 'kubectl'}", *verb, "-f", "-")
    done = run(go_program("kubectl"), *words, input=yaml.safe_dump_all(objects))
    assert done.returncode == 0, done.stderr


@contextlib.contextmanager
def applied(kube, objects):
    kubectl(kube, objects, "apply")
    try:
        yield
    finally:
        kubectl(kube, objects, "delete", "--ignore-not-found")


def secret(namespace, name, contents):
    data = {key: base64.b64encode(value).decode() for key, value in contents.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": data}


def certificate(folder, namespace, service):
    """A Secret as cert-manager writes it."""
    key, cert = make_certificate(folder, service, f"subjectAltName=DNS:{service}.{namespace}.svc")
    files = {"tls.crt": cert, "tls.key": key, "ca.crt": cert}
    return secret(namespace, WEB["tls"]["secretName"], {name: file.read_bytes() for name, file in files.items()})


def agent_spec(objects):
    """With what OCM adds to it."""
    spec = helm.named(objects, "Deployment")["spec"]["template"]["spec"]
    container = spec["containers"][0]
    env = {"CLUSTER_NAME": CLUSTER, "INSTALL_NAMESPACE": NAMESPACE, "HUB_KUBECONFIG": f"{HUB_FOLDER}/kubeconfig"}
    container["env"] = [*container.get("env", []), *({"name": k, "value": v} for k, v in env.items())]
    container["volumeMounts"].append({"name": HUB_SECRET, "mountPath": HUB_FOLDER})
    spec["volumes"].append({"name": HUB_SECRET, "secret": {"secretName": HUB_SECRET}})
    return spec


class Part:
    """A running pod, and how Prometheus is told to scrape it."""

    def __init__(self, kube, pod, monitor, folder):
        self.kube, self.pod, self.monitor, self.folder = kube, pod, monitor, folder
        self.address = urllib.parse.urlsplit(pod.url("http-metrics")).netloc

    def value(self, key):
        """Of a key of a Secret, which is beside the monitor."""
        path = f"api/v1/namespaces/{self.monitor['metadata']['namespace']}/secrets/{key['name']}"
        return base64.b64decode(self.kube.call("GET", path)["data"][key["key"]])

    def tls(self):
        """(file, name) of a monitor's tlsConfig."""
        config = self.monitor["spec"]["endpoints"][0]["tlsConfig"]
        file = self.folder / f"{self.monitor['metadata']['name']}.crt"
        file.write_bytes(self.value(config["ca"]["secret"]))
        return file, config["serverName"]

    def job(self, token_file=None):
        """As prometheus-operator writes it; the file is that of Prometheus' own token."""
        endpoint = self.monitor["spec"]["endpoints"][0]
        job = {"job_name": self.monitor["metadata"]["name"], "static_configs": [{"targets": [self.address]}]}
        if "basicAuth" in endpoint:
            job["basic_auth"] = {name: self.value(key).decode() for name, key in endpoint["basicAuth"].items()}
            return job
        assert endpoint["bearerTokenFile"] == "/var/run/secrets/kubernetes.io/serviceaccount/token"
        ca, name = self.tls()
        tls = {"ca_file": str(ca), "server_name": name}
        return {**job, "scheme": endpoint["scheme"], "tls_config": tls, "authorization": {"credentials_file": str(token_file)}}

    def status(self, path, token=None, trusting=True):
        """Of a request that verifies what the monitor does. The pod listens on this machine only, and takes no other host."""
        ca, name = self.tls()
        words = ["--header", f"Host: {self.address}", *(["--cacert", ca] if trusting else [])]
        words += ["--header", f"Authorization: Bearer {token}"] if token else []
        url = f"https://{name}:{self.address.split(':')[1]}{path}"
        done = run("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *words, "--connect-to", f"::{self.address}", url)
        return int(done.stdout) if done.returncode == 0 else f"curl: {done.returncode}"


@pytest.fixture(name="parts", scope="module")
def running_parts(api_server, tmp_path_factory):
    kube, tmp_path = clean_hub(api_server).kube, tmp_path_factory.mktemp("secured")
    rendered = helm.render(values=VALUES)
    groups = {"controller": rendered, "agent": helm.on_clusters(rendered)}
    with contextlib.ExitStack() as stack:
        parts, hub_files = {}, {f.name: f.read_bytes() for f in kube.kubeconfig("hub").parent.iterdir()}
        stack.enter_context(applied(kube, [secret(NAMESPACE, HUB_SECRET, hub_files)]))
        for part, (namespace, service) in PARTS.items():
            needed = [o for o in groups[part] if o["kind"] in NEEDED]
            stack.enter_context(applied(kube, [*needed, certificate(tmp_path, namespace, service)]))
        specs = {
            "controller": helm.named(rendered, "Deployment")["spec"]["template"]["spec"],
            "agent": agent_spec(groups["agent"]),
        }
        for part, (namespace, _) in PARTS.items():
            pod = stack.enter_context(running_pod(kube, namespace, specs[part], f"secured-{part}"))
            parts[part] = Part(kube, pod, helm.named(groups[part], "ServiceMonitor"), tmp_path)
        yield parts


def test_monitors_lead_to_metrics(parts, tmp_path):
    token = tmp_path / "token"
    token.write_text(token_of(parts["agent"].kube, (READER["namespace"], READER["name"])))
    with running_prometheus(*(part.job(token) for part in parts.values())) as prometheus:
        for part in parts.values():
            job = part.monitor["metadata"]["name"]
            prometheus.wait_query(f'up{{job="{job}"}} == 1', f"{job} is scraped")
            prometheus.wait_query(f'dynamic_scoring_build_info{{job="{job}"}}', f"{job} has metrics")


def test_others_are_refused(parts):
    for part in parts.values():
        nobody, reader = (token_of(part.kube, ("default", name)) for name in ("secured-nobody", READER["name"]))
        assert part.status("/metrics", reader) == 200
        assert [part.status("/metrics", token) for token in (None, nobody)] == [401, 403]
        assert [part.status("/", token) for token in (None, nobody, reader)] == [401, 403, 403]
        assert part.status("/metrics", reader, trusting=False) == f"curl: {UNKNOWN_CA}"
        assert (part.pod.probe("livenessProbe"), part.pod.probe()) == (200, 200)


def test_basic_authentication(hub, tmp_path):
    """Of a second release."""
    kube = hub.kube
    rendered = helm.render(values={"controller": BASIC, "hubSetting": {"skipClusterSetBinding": True}}, release="basic")
    known = secret(HUB_NAMESPACE, "scrape", {"username": b"prometheus", "password": PASSWORD.encode()})
    spec = helm.named(rendered, "Deployment")["spec"]["template"]["spec"]
    with (
        applied(kube, [*(o for o in rendered if o["kind"] in NEEDED), known]),
        running_pod(kube, HUB_NAMESPACE, spec, "basic-controller") as pod,
    ):
        part = Part(kube, pod, helm.named(rendered, "ServiceMonitor"), tmp_path)
        with running_prometheus(part.job()) as prometheus:
            prometheus.wait_query("up == 1", "it is scraped")
        assert call("GET", pod.url("http-metrics") + "/metrics").status == 401
        assert pod.probe() == 200
