"""A flood of unfinished handshakes and wrong passwords stops neither rounds nor scrapers, and memory keeps its ceiling."""

import pathlib
import time

from lib.certificates import Authority
from lib.flood import Flood, slow_handshakes
from lib.prometheus import running_prometheus
from lib.web import BASIC, PASSWORD, USER, client_context, tls_agent, web_file

SLOW, SCRAPERS, SCRAPES, GUESSERS = 1000, 300, 3, 8
CEILING = 512 << 20  # with the sanitizers' memory: they keep what was freed


def peak_bytes(agent):
    status = pathlib.Path(f"/proc/{agent.process.popen.pid}/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])


def test_all_at_once(fake, tmp_path):
    authority = Authority(tmp_path / "authority")
    web = web_file(tmp_path, authority.issue("server"), users=True)
    password = tmp_path / "password"
    password.write_text(PASSWORD)
    context = client_context(authority)
    with tls_agent(fake, web, context, BASIC) as agent:
        job = {
            "job_name": "agent", "scheme": "https", "static_configs": [{"targets": [f"127.0.0.1:{agent.port}"]}],
            "tls_config": {"ca_file": str(authority.cert)},
            "basic_auth": {"username": USER, "password_file": str(password)},
        }  # fmt: skip
        with running_prometheus(job) as prometheus, slow_handshakes(agent.port, SLOW):
            rounds, began = agent.status("s")["rounds"], time.time()
            flood = Flood(agent.port, context, USER, PASSWORD)
            flood.run(SCRAPERS, SCRAPES, GUESSERS)
            assert len(flood.seconds) == SCRAPERS * SCRAPES and flood.refused
            agent.wait_rounds("s", rounds + 3)
            prometheus.wait_query(f'timestamp(up{{job="agent"}} == 1) > {began}', "Prometheus scrapes during the flood")
        assert agent.status("s")["state"] == "ok"
        assert peak_bytes(agent) < CEILING
