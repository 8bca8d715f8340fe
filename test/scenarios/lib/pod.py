"""A pod as a process: the first container of a pod spec with its command, args, environment, user, files and the rights of its
ServiceAccount, on an API server of test/kube-apiserver.

The process sees the files of this machine, read-only where the spec says so, with the pod's volumes mounted over them and our
program in the image's place. Only its ports differ: pods share one machine, so that each port is replaced by a free one. The
names that it resolves are those that the test gives it, as cluster DNS would.
"""

import base64
import contextlib
import os
import pathlib
import re
import shlex
import shutil
import tempfile

from lib.agent import PROGRAM
from lib.client import call
from lib.kube import Refused
from lib.process import Process, free_port, missing, run
from lib.wait import LONG, wait_until

IMAGE_USER = 65532  # USER of the image
IMAGE_PROGRAM = "/dynamic-scoring"  # its ENTRYPOINT
IMAGE_LINKS = ("/manager", "/dynamic-scoring-addon")
TOKENS = "/var/run/secrets/kubernetes.io/serviceaccount"
TOKEN_SECONDS = 3600

# In a mount namespace of its own: this machine's files with a layer in memory over them. $1 is the layer's folder, $2 what
# mounts the volumes, $3 the option of the root, the rest the command.
ENTER = """set -e
layer=$1 volumes=$2 access=$3
shift 3
mount -t tmpfs tmpfs "$layer"
mkdir "$layer/upper" "$layer/work" "$layer/root"
chmod 755 "$layer" "$layer/upper"
mount -t overlay -o "lowerdir=/,upperdir=$layer/upper,workdir=$layer/work" overlay "$layer/root"
cd "$layer/root"
for top in proc dev sys; do mount --rbind "/$top" "$top"; done
. "$volumes"
mount -o "remount,bind,$access" "$layer/root"
exec chroot . "$@"
"""


def decoded(data):
    return {k: base64.b64decode(v) for k, v in (data or {}).items()}


def namespaces_of_our_own():
    """The command that starts another in a mount namespace; skips the test where that is not allowed."""
    words = ["unshare", "--mount"] if os.getuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    if run(*words, "true").returncode != 0:
        missing("no mount namespaces here: unshare is not permitted")
    return words


class Pod:
    def __init__(self, kube, namespace, spec, folder, name="pod-0", program=PROGRAM, hosts=None, services=None):
        """hosts: {name: address} that it can resolve. services: {"name:port": "address:port"} of Services in its command."""
        self.kube, self.namespace, self.spec, self.name = kube, namespace, spec, name
        self.folder, self.program = pathlib.Path(folder), program
        self.hosts, self.services = hosts or {}, services or {}
        self.container = spec["containers"][0]
        self.ports = {p["containerPort"]: free_port() for p in self.container.get("ports", [])}
        self.process, self.generation = None, 0

    # ---- Objects that it refers to ----

    def data(self, kind, name, optional=False):
        """The contents of a Secret or a ConfigMap. As kubelet does, waits for one that is required: the work agent applies
        the objects of a ManifestWork in any order."""
        path = f"api/v1/namespaces/{self.namespace}/{kind}/{name}"
        found = self.kube.find(path)
        if not found and optional:
            return {}
        found = found or wait_until(lambda: self.kube.find(path), f"{self.name} has {kind}/{name}", LONG)
        if kind == "secrets":
            return decoded(found.get("data"))
        return {k: v.encode() for k, v in found.get("data", {}).items()} | decoded(found.get("binaryData"))

    def account(self):
        return self.spec.get("serviceAccountName", "default")

    def token(self, audience=None, seconds=TOKEN_SECONDS):
        account = f"api/v1/namespaces/{self.namespace}/serviceaccounts/{self.account()}"
        wait_until(lambda: self.kube.find(account), f"{self.name} has its ServiceAccount", LONG)
        spec = {"expirationSeconds": seconds, **({"audiences": [audience]} if audience else {})}
        return self.kube.call("POST", f"{account}/token", {"spec": spec})["status"]["token"].encode()

    def mounts_token(self):
        path = f"api/v1/namespaces/{self.namespace}/serviceaccounts/{self.account()}"
        account = self.kube.find(path) or {}
        wanted = self.spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken", True))
        return wanted and all(m["mountPath"] != TOKENS for m in self.container.get("volumeMounts", []))

    def token_files(self):
        ca = (self.kube.state / "ca.crt").read_bytes()
        return {"token": self.token(), "ca.crt": ca, "namespace": self.namespace.encode()}

    def field(self, path):
        fields = {
            "metadata.name": self.name,
            "metadata.namespace": self.namespace,
            "spec.nodeName": "node-0",
            "spec.serviceAccountName": self.account(),
            "status.podIP": "127.0.0.1",
            "status.hostIP": "127.0.0.1",
        }
        return fields[path]

    # ---- Files ----

    def chosen(self, source, data):
        """The files of a volume: those that its `items` name, or all."""
        if "items" not in source:
            return data
        return {i["path"]: data[i["key"]] for i in source["items"] if i["key"] in data or not source.get("optional")}

    def projected(self, sources):
        files = {}
        for source in sources:
            ((kind, one),) = source.items()
            if kind == "serviceAccountToken":
                files[one["path"]] = self.token(one.get("audience"), one.get("expirationSeconds", TOKEN_SECONDS))
            elif kind == "downwardAPI":
                files |= {i["path"]: self.field(i["fieldRef"]["fieldPath"]).encode() for i in one["items"]}
            elif kind == "configMap" and one["name"] == "kube-root-ca.crt":
                files |= self.chosen(one, {"ca.crt": (self.kube.state / "ca.crt").read_bytes()})
            else:
                files |= self.chosen(one, self.data(f"{kind.lower()}s", one["name"], one.get("optional")))
        return files

    def files_of(self, volume):
        """Its files and their mode; None for a folder that the container writes to."""
        if "secret" in volume:
            source = volume["secret"]
            files = self.chosen(source, self.data("secrets", source["secretName"], source.get("optional")))
        elif "configMap" in volume:
            source = volume["configMap"]
            files = self.chosen(source, self.data("configmaps", source["name"], source.get("optional")))
        elif "projected" in volume:
            source = volume["projected"]
            files = self.projected(source["sources"])
        else:
            assert "emptyDir" in volume or "persistentVolumeClaim" in volume, f"a volume of an unknown type: {volume}"
            return None, None
        return files, source.get("defaultMode", 0o644)

    def write_files(self, home, files, mode):
        """As kubelet does: a new folder, to which a symlink is switched. The files belong to root, and to fsGroup."""
        group = self.spec.get("securityContext", {}).get("fsGroup", 0)
        inner = home / f"..{self.generation}"
        for name, contents in files.items():
            file = inner / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(contents)
            file.chmod(mode | 0o440 if group else mode)
            if os.getuid() == 0:
                os.chown(file, 0, group)
            link = home / name.split("/")[0]
            if not link.is_symlink():
                link.symlink_to(f"..data/{link.name}")
        (home / "..new").symlink_to(inner.name)
        (home / "..new").rename(home / "..data")

    def volume(self, name):
        return self.folder / "volumes" / name

    def refresh(self):
        """Writes the volumes as their objects are now, which kubelet does within a minute or so."""
        self.generation += 1
        for volume in self.spec.get("volumes", []):
            files, mode = self.files_of(volume)
            home = self.volume(volume["name"])
            home.mkdir(parents=True, exist_ok=True)
            if files is None:
                home.chmod(0o777)
            else:
                self.write_files(home, files, mode)
        if self.mounts_token():
            self.volume("..token").mkdir(parents=True, exist_ok=True)
            self.write_files(self.volume("..token"), self.token_files(), 0o644)

    def name_files(self):
        """What kubelet writes for name resolution, without a DNS server."""
        lines = [f"{address} {name}" for name, address in {"localhost": "127.0.0.1", **self.hosts}.items()]
        (self.folder / "hosts").write_text("\n".join(lines) + "\n")
        (self.folder / "resolv.conf").write_text("nameserver 127.0.0.1\noptions attempts:1 timeout:1\n")
        return [(self.folder / name, f"/etc/{name}", False) for name in ("hosts", "resolv.conf")]

    def mounts(self):
        """[(what, where, read-only)]. A path is resolved first: /var/run is a symlink."""
        found = [(self.program, IMAGE_PROGRAM, True), *self.name_files()]
        for mount in self.container.get("volumeMounts", []):
            what = self.volume(mount["name"]) / mount.get("subPath", "")
            found.append((what, mount["mountPath"], mount.get("readOnly", False)))
        if self.mounts_token():
            found.append((self.volume("..token"), TOKENS, True))
        return [(pathlib.Path(what), os.path.realpath(where), only) for what, where, only in found]

    def mount_script(self):
        lines = []
        for what, where, read_only in self.mounts():
            where = shlex.quote("." + where)
            make = f"mkdir -p {where}" if what.is_dir() else f"mkdir -p $(dirname {where}); [ -e {where} ] || : >{where}"
            lines += [make, f"mount --bind {shlex.quote(str(what))} {where}"]
            if read_only:
                lines.append(f"mount -o remount,bind,ro {where}")
        lines += [f"ln -s {IMAGE_PROGRAM} .{link}" for link in IMAGE_LINKS]
        file = self.folder / "mounts"
        file.write_text("\n".join(lines) + "\n")
        return file

    # ---- Command ----

    def env_value(self, entry):
        if "valueFrom" not in entry:
            return entry.get("value", "")
        ((kind, source),) = entry["valueFrom"].items()
        if kind == "fieldRef":
            return self.field(source["fieldPath"])
        kinds = {"secretKeyRef": "secrets", "configMapKeyRef": "configmaps"}
        return self.data(kinds[kind], source["name"]).get(source["key"], b"").decode()

    def env(self):
        env = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self.kube.port),
        }
        for entry in self.container.get("env", []):
            env[entry["name"]] = expand(self.env_value(entry), env)
        return env

    def with_own_port(self, word):
        """--flag=:8080 with the port that is ours, at 127.0.0.1."""
        found = re.fullmatch(r"(.*=)?(?:0\.0\.0\.0|\[::\])?:(\d+)", word)
        if not found or int(found[2]) not in self.ports:
            return word
        return f"{found[1] or ''}127.0.0.1:{self.ports[int(found[2])]}"

    def words(self, env):
        """The container's command."""
        words = [*self.container.get("command", [IMAGE_PROGRAM]), *self.container.get("args", [])]
        words = [self.with_own_port(expand(word, env)) for word in words]
        for service, address in self.services.items():
            words = [word.replace(service, address) for word in words]
        return words

    def security(self, key, default=None):
        """Of the container, or else of the pod."""
        both = {**self.spec.get("securityContext", {}), **self.container.get("securityContext", {})}
        return both.get(key, default)

    def as_user(self):
        if os.getuid() != 0:
            return []  # one user is all that a namespace without root has
        user = self.security("runAsUser", IMAGE_USER)
        group = self.security("runAsGroup", IMAGE_USER)
        groups = [str(self.spec["securityContext"]["fsGroup"])] if "fsGroup" in self.spec.get("securityContext", {}) else []
        groups = [f"--groups={','.join(groups)}"] if groups else ["--clear-groups"]
        assert user != 0 or not self.security("runAsNonRoot"), "runAsNonRoot, but user 0"
        return ["setpriv", f"--reuid={user}", f"--regid={group}", *groups, "--no-new-privs", "--bounding-set=-all"]

    def command(self):
        env = self.env()
        layer = self.folder / "layer"
        layer.mkdir(exist_ok=True)
        access = "ro" if self.security("readOnlyRootFilesystem") else "rw"
        enter = [*namespaces_of_our_own(), "sh", "-c", ENTER, "enter", layer, self.mount_script(), access]
        return [*enter, *self.as_user(), "env", "-i", *(f"{k}={v}" for k, v in env.items()), *self.words(env)]

    # ---- Running it ----

    def start(self):
        self.folder.chmod(0o755)
        self.refresh()
        self.process = Process(self.name, self.command(), self.folder / f"{self.name}.log")

    def url(self, port):
        """port: that of the spec, or its name."""
        for one in self.container["ports"]:
            if port in (one["containerPort"], one.get("name")):
                return f"http://127.0.0.1:{self.ports[one['containerPort']]}"
        raise AssertionError(f"no port {port}: {self.container['ports']}")

    def probe(self, kind="readinessProbe"):
        """The HTTP status of a probe, asked as kubelet does."""
        get = self.container[kind]["httpGet"]
        return call("GET", self.url(get["port"]) + get["path"]).status

    def wait_ready(self):
        def ready():
            self.process.check_alive()
            return self.probe() == 200

        wait_until(ready, f"{self.name} is ready")

    def log(self):
        return self.process.log()


def expand(text, env):
    """$(NAME) of the environment; an unknown one stays as it is, $$(NAME) is an escape."""
    return re.sub(r"\$(\$)?\((\w+)\)", lambda m: m[0][1:] if m[1] else env.get(m[2], m[0]), text)


@contextlib.contextmanager
def running_pod(kube, namespace, spec, name="pod-0", ready=True, **more):
    """Started, and ready if it has such a probe; must end with status 0 on SIGTERM."""
    with tempfile.TemporaryDirectory() as folder:
        pod = Pod(kube, namespace, spec, folder, name, **more)
        try:
            pod.start()
            if ready and "readinessProbe" in pod.container:
                pod.wait_ready()
            yield pod
            pod.process.end()
        finally:
            pod.process and pod.process.kill()
            shutil.rmtree(pod.folder / "volumes", ignore_errors=True)


def deployed(kube, namespace, name):
    """The pod spec of a Deployment on the API server; None if it is not there yet."""
    found = kube.find(f"apis/apps/v1/namespaces/{namespace}/deployments/{name}")
    return found and found["spec"]["template"]["spec"]


def mark_available(kube, namespace, name, ready=None):
    """Writes what the controllers of Deployments and kubelet write once all pods are ready, or that many."""
    path = f"apis/apps/v1/namespaces/{namespace}/deployments/{name}"
    found = kube.call("GET", path)
    count = found["spec"].get("replicas", 1)
    ready = count if ready is None else ready
    counts = {"replicas": count, "updatedReplicas": count, "readyReplicas": ready, "availableReplicas": ready}
    status = {"observedGeneration": found["metadata"]["generation"], **counts}
    with contextlib.suppress(Refused):
        kube.call("PATCH", f"{path}/status", {"status": status}, "application/merge-patch+json")
