"""A configuration may come through a pipe: the agent waits for its writer, but not forever, and stays with what it
read."""

import json
import os
import signal
import subprocess
import threading

from lib.agent import PROGRAM, summary
from lib.fake import results
from lib.process import run


def test_a_pipe_that_is_written_later(fake, start_agent, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    text = json.dumps({"clusterName": "c1", "summaries": [summary("s", fake.on("/s", results({}, 1)))]})
    writer = threading.Thread(target=pipe.write_text, args=[text])  # opens the pipe once the agent has
    writer.start()
    agent = start_agent({}, f"--config.file={pipe}")
    writer.join()
    agent.wait_scores("s")
    assert f"reading the configuration from a pipe\" file={pipe} timeout_s=10" in agent.log()
    agent.process.send(signal.SIGHUP)
    agent.wait_log("configuration not read again: the file is a pipe")
    agent.wait_until(lambda: agent.log().count("configuration applied") == 2, "the reload is done")
    assert agent.status("s")["state"] == "ok"


def test_process_substitution():
    command = ["bash", "-c", f"{PROGRAM} check-config <(sleep 0.2; echo '[]')"]
    assert "valid, 0 scorers" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_pipe_that_nobody_writes(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    ended = run(PROGRAM, "check-config", pipe)
    assert ended.returncode == 1
    assert "the pipe was not written and closed within 10 s" in ended.stderr
