"""Series received by OTLP outlive a restart under the storage path; a damaged file costs what follows the damage."""

from lib.agent import running_agent
from lib.otlp import gauge, point, push, request
from lib.process import free_port


def test_series_are_loaded_after_a_restart(tmp_path):
    port, storage = free_port(), tmp_path / "storage"
    listen = f"--otlp.listen-address=127.0.0.1:{port}"
    with running_agent({"summaries": []}, listen, f"--storage.path={storage}") as agent:
        points = [point(i, labels={"pod": f"p{i}"}) for i in range(50)]
        assert push(f"http://127.0.0.1:{port}/v1/metrics", request(gauge("m", *points))).json == {}
        agent.process.end()
        agent.start()
        agent.wait_metric_is(50, "dynamic_scoring_otlp_series")
        assert agent.metric("dynamic_scoring_otlp_samples") == 50
        # The very same samples again: they are there.
        assert push(f"http://127.0.0.1:{port}/v1/metrics", request(gauge("m", *points))).json == {}
        assert agent.metric("dynamic_scoring_otlp_samples") == 50
        agent.process.end()
        file = storage / "otlp-series"
        file.write_bytes(file.read_bytes()[:-200])
        agent.start()
        agent.wait_log("cannot load all saved OTLP series")
        assert 0 < agent.metric("dynamic_scoring_otlp_series") < 50
        assert "the file is damaged" in agent.log()


def test_a_storage_path_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    listen = f"--otlp.listen-address=127.0.0.1:{free_port()}"
    with running_agent({"summaries": []}, listen, f"--storage.path={tmp_path}/file") as agent:
        agent.process.end()
        assert 'msg="cannot save OTLP series"' in agent.log()
