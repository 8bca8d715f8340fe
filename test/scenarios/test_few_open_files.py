"""With too few open files allowed the program ends with a clear error; with few, it serves all who ask in turn."""

from lib.agent import PROGRAM, summary
from lib.attack import connections
from lib.fake import results
from lib.process import run


def test_too_few(start_agent):
    agent = start_agent({"summaries": []}, start=False)
    ended = run("prlimit", "--nofile=12:12", PROGRAM, "agent", f"--config.file={agent.file}")
    assert ended.returncode == 1
    assert "the limit of open files is 12, at least 64 are needed" in ended.stderr


def test_few(fake, start_agent):
    agent = start_agent({"summaries": [summary("s", fake.on("/s", results({}, 1)))]}, start=False)
    agent.command = ["prlimit", "--nofile=64:64", *agent.command]
    agent.start()
    with connections(agent.port, 200):
        rounds = agent.wait_rounds("s")["rounds"]
        agent.wait_rounds("s", rounds + 2)
        assert agent.status("s")["state"] == "ok"
