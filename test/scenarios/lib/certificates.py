"""Certificates, made by openssl."""

import pathlib
import subprocess

NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]


def openssl(*arguments, before=()):
    done = subprocess.run(
        [*before, "openssl", *map(str, arguments)], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr


class Authority:
    """An authority in a folder of its own."""

    def __init__(self, folder, name="authority"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(exist_ok=True)
        self.cert, self.key = self.folder / "ca.crt", self.folder / "ca.key"
        openssl("req", "-x509", *NEW_KEY, "-days", 30, "-subj", f"/CN={name}", "-keyout", self.key, "-out", self.cert,
                "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def issue(self, name, *names, rsa=False, expired=False):
        """(certificate, key) for servers and clients; names as in subjectAltName, "IP:127.0.0.1"."""
        cert, key, request, extensions = (self.folder / f"{name}.{end}" for end in ("crt", "key", "csr", "ext"))
        openssl("req", "-new", *(["-newkey", "rsa:2048", "-nodes"] if rsa else NEW_KEY), "-subj", f"/CN={name}", "-keyout",
                key, "-out", request)
        extensions.write_text(
            f"subjectAltName={','.join(names or ['IP:127.0.0.1', 'DNS:localhost'])}\n"
            "extendedKeyUsage=serverAuth,clientAuth\nbasicConstraints=CA:FALSE\n"
        )
        openssl("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.key, "-CAcreateserial", "-days", 2,
                "-extfile", extensions, "-out", cert, before=["faketime", "-10 days"] if expired else [])
        return cert, key
