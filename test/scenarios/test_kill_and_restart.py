"""After kill -9 the agent starts on the same port and scores immediately, not after one interval."""

import signal

from lib.agent import summary
from lib.fake import hanging, results


def test_first_round_at_once(fake, start_agent):
    scorers = [
        summary("s", fake.on("/s", results({}, 1)), interval=600),
        summary("hangs", fake.on("/hangs", hanging)),
    ]
    agent = start_agent({"summaries": scorers})
    agent.wait_scores("s")
    for _ in range(2):
        before = len(fake.requests("/s"))
        agent.process.kill()
        assert agent.process.popen.returncode == -signal.SIGKILL
        agent.start()
        assert agent.wait_scores("s") == [({}, 1)]
        assert len(fake.requests("/s")) == before + 1
