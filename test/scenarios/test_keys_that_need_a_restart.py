"""What needs a restart stays as it is until then: it is what the status shows and what is used, and each reload says so."""

from lib.agent import PROGRAM, summary
from lib.client import call
from lib.fake import plain, results
from lib.process import free_port

LISTEN = "listenAddresses changed: restart to apply"
STORAGE = "storagePath changed: restart to apply"


def test_listen_addresses_and_storage_path(fake, start_agent, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    other = free_port()
    receiver = fake.on("/write", plain(b"", 204))
    agent = start_agent({"summaries": []}, start=False)
    here = f"127.0.0.1:{agent.port}"
    agent.command = [PROGRAM, "agent", f"--config.file={agent.file}", "--web.enable-lifecycle"]
    config = {"summaries": [summary("s", fake.on("/s", results({}, 1)))], "listenAddresses": [here]}
    config |= {"storagePath": str(first), "remoteWrite": [{"name": "one", "url": receiver}]}
    agent.write(config)
    agent.start()

    def shown():
        found = agent.status()["config"]
        return found["listen"], found["storageFolder"]

    def warned():
        return agent.log().count(LISTEN), agent.log().count(STORAGE)

    for n in (1, 2):
        changed = {"listenAddresses": [f"127.0.0.1:{other}"], "storagePath": str(second)}
        endpoints = [{"name": name, "url": receiver} for name in ("one", "two", "three")[: n + 1]]
        agent.apply(config | changed | {"remoteWrite": endpoints})
        agent.wait_until(lambda n=n: len(list((first / "remote-write").iterdir())) == n + 1, "the new endpoint's folder")
        assert shown() == ([here], str(first))
        assert warned() == (n, n), "each reload says what it has not applied"
        assert not second.exists()
    agent.apply(config)
    assert shown() == ([here], str(first))
    assert warned() == (2, 2), "it is what the agent runs with again"
    agent.apply({key: value for key, value in config.items() if key != "storagePath"})
    assert shown() == ([here], str(first))
    assert warned() == (2, 3)
    assert call("GET", f"{agent.url}/-/ready").status == 200
