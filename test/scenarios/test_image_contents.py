"""The image is small, names its user and its origin, is there for all architectures, and lists what is in it."""

import hashlib
import json
import os
import stat
import subprocess

import pytest

from lib.agent import summary
from lib.fake import results, series
from lib.image import NATIVE, USER, archive, files, need_image, sbom
from lib.process import ROOT, run

MEGABYTE = 1000 * 1000
ARCHITECTURES = ("amd64", "arm64", "ppc64le", "s390x")
EMULATORS = {"amd64": "x86_64", "arm64": "aarch64"}  # as QEMU calls them, where that differs
# Debian's sources of what is linked into the program.
LINKED = {
    "curl", "glibc", "gmp", "gnutls28", "jansson", "libisal", "libmicrohttpd", "libxcrypt", "libyaml", "libzstd",
    "nettle", "openssl", "pcre2", "protobuf-c", "snappy", "xxhash", "zlib",
}  # fmt: skip

@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_manifest(arch):
    need_image(arch)
    found = archive()
    config = found.config(arch)
    assert config["architecture"] == arch and config["os"] == "linux"
    assert config["config"]["User"] == f"{USER}:{USER}"
    assert config["config"]["Entrypoint"] == ["/dynamic-scoring"]
    labels = config["config"]["Labels"]
    assert labels["org.opencontainers.image.version"] == (ROOT / ".version").read_text().strip()
    assert all(labels[f"org.opencontainers.image.{name}"] for name in ("title", "licenses", "source", "revision"))
    most = 5 * MEGABYTE if arch in ("amd64", "arm64") else 6 * MEGABYTE
    assert sum(layer["size"] for layer in found.manifest(arch)["layers"]) < most


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_program(arch):
    root = files(arch)
    program = root / "dynamic-scoring"
    for name in ("manager", "dynamic-scoring-addon"):
        assert os.readlink(root / name) == "dynamic-scoring"
    headers = subprocess.run(["readelf", "-ld", program], capture_output=True, text=True, check=True).stdout
    assert "NEEDED" not in headers and "INTERP" not in headers
    if arch != "ppc64le":  # whose glibc has no start for that
        assert "DYN" in headers and "BIND_NOW" in headers  # loaded at a random address, relocations read-only
    assert str(ROOT).encode() not in program.read_bytes()


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_nothing_to_write_and_no_other_program(arch):
    root = files(arch)
    programs = []
    for path in root.rglob("*"):
        mode = path.lstat().st_mode
        assert not mode & (stat.S_ISUID | stat.S_ISGID), path
        if stat.S_ISREG(mode) and mode & 0o111:
            programs.append(path.name)
        if not stat.S_ISLNK(mode) and path != root / "tmp":
            assert not mode & 0o002, path
    assert programs == ["dynamic-scoring"]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_bill_of_materials(arch):
    root, document = files(arch), sbom(arch)
    assert document["spdxVersion"] == "SPDX-2.3" and document["dataLicense"] == "CC0-1.0"
    packages = {p["SPDXID"]: p for p in document["packages"]}
    assert len(packages) == len(document["packages"])
    relations = document["relationships"]
    assert all(packages[r["relatedSpdxElement"]] for r in relations)
    own = packages.pop("SPDXRef-dynamic-scoring")
    program = (root / "dynamic-scoring").read_bytes()
    assert own["checksums"][0]["checksumValue"] == hashlib.sha256(program).hexdigest()
    linked = {r["relatedSpdxElement"] for r in relations if r["relationshipType"] == "STATIC_LINK"}
    sources = {packages[p]["sourceInfo"].split()[-2]: packages[p] for p in linked}
    compiler = {"gcc-14"} if arch == "s390x" else {"gcc-12"}  # of Debian 13, which has updates for it
    assert {name.removesuffix("-cross") for name in sources} == LINKED | compiler
    # The program itself says which version it has.
    openssl = sources["openssl"]["versionInfo"].split("-")[0]
    assert f"OpenSSL {openssl} ".encode() in program
    if arch == NATIVE:
        version = run(root / "dynamic-scoring", "--version").stdout
        assert f"libcurl/{sources['curl']['versionInfo'].split('-')[0]} OpenSSL/{openssl}" in version
    for package in packages.values():
        assert (root / "usr/share/doc" / package["name"] / "copyright").stat().st_size > 100
        record = (root / "var/lib/dpkg/status.d" / package["name"]).read_text()
        assert f"Version: {package['versionInfo']}\n" in record


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_scores(fake, tmp_path, arch):
    """By QEMU where the machine is another."""
    program = files(arch) / "dynamic-scoring"
    emulator = [] if NATIVE == arch else [f"qemu-{EMULATORS.get(arch, arch)}-static"]
    config = tmp_path / "config"
    fake.on("/api/v1/query_range", series({"node": "n1"}))
    scorer = summary("s", fake.on("/s", results({"node": "n1"}, 7)), source=fake.url)
    config.write_text(json.dumps({"clusterName": "c1", "summaries": [scorer]}))
    done = run(*emulator, program, "agent", f"--config.file={config}", "--once", "--output=prom")
    assert done.returncode == 0, done.stderr
    scores = [line for line in done.stdout.splitlines() if line.startswith("dynamic_score{")]
    assert len(scores) == 1 and 'ds_node="n1"' in scores[0] and scores[0].endswith(" 7")
