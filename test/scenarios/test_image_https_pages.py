"""The image's libmicrohttpd can serve HTTPS: GnuTLS is linked with it, and speaks TLS 1.3."""

import os
import pathlib
import shlex
import ssl
import subprocess
import urllib.request

from lib import image
from lib.process import Process, free_port
from lib.wait import wait_until

CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "dynamic-scoring-tests"


def build(program):
    """With the libraries of the image, the newest in the cache."""
    image.need_image()
    libraries = max(CACHE.glob(f"static-{image.NATIVE}-*"), key=lambda folder: folder.stat().st_mtime)
    env = {**os.environ, "PKG_CONFIG_PATH": str(libraries / "lib/pkgconfig")}
    link = subprocess.run(
        ["pkg-config", "--libs", "libmicrohttpd"], capture_output=True, text=True, check=True, env=env
    ).stdout
    source = pathlib.Path(image.__file__).with_name("https_page.c")
    subprocess.run(["gcc", "-static-pie", source, "-o", program, *shlex.split(link)], check=True, capture_output=True)


def test_page(tmp_path):
    program, key, cert, port = tmp_path / "page", tmp_path / "key", tmp_path / "cert", free_port()
    build(program)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
        + ["-subj", "/CN=here", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True,
        capture_output=True,
    )
    process = Process("https_page", [program, key, cert, port], tmp_path / "log")
    try:
        context = ssl.create_default_context(cafile=cert)
        context.minimum_version = ssl.TLSVersion.TLSv1_3

        def page():
            process.check_alive()
            return urllib.request.urlopen(f"https://127.0.0.1:{port}/", context=context, timeout=10).read()

        assert wait_until(page, "the page is served") == b"a page\n"
    finally:
        process.kill()
