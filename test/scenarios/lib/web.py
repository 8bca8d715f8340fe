"""Agents whose endpoints have TLS and basic authentication."""

import base64
import contextlib
import json
import ssl

from lib.agent import running_agent, summary
from lib.fake import results

USER, PASSWORD = "prometheus", "secret of the scraper"
HASH = "$2b$10$dZT42Cj/y8RWdsiyremLbOj7wv4i90uv.A3rg1LMyNYMWBnjSGAhu"  # of it
BASIC = {"Authorization": "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()}


def client_context(authority, pair=None):
    context = ssl.create_default_context(cafile=authority.cert)
    if pair:
        context.load_cert_chain(*pair)
    return context


def web_file(folder, pair, users=False, **tls):
    """Writes the web configuration, as a whole; returns its path."""
    config = {"tls_server_config": {"cert_file": str(pair[0]), "key_file": str(pair[1]), **tls}}
    if users:
        config["basic_auth_users"] = {USER: HASH}
    fresh, path = folder / "web.new", folder / "web.yml"
    fresh.write_text(json.dumps(config))
    fresh.rename(path)
    return path


@contextlib.contextmanager
def tls_agent(fake, web, tls, headers=None):
    config = {"summaries": [summary("s", fake.on("/s", results({"node": "n1"}, 1)))]}
    with running_agent(config, f"--web.config.file={web}", tls=tls, headers=headers) as agent:
        agent.wait_scores("s")
        yield agent
