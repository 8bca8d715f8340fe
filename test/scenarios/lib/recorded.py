"""Series of exporters as their documentation has them, of a good and of a bad cluster, for a Prometheus that has them from the start.

A page has a line for each series: its value, or for a counter "+" and by how much it grows in a second. Lines of both clusters are
the same but for the figures, except where a bad cluster has more objects.
"""

import time

STEP = 15  # seconds
PAST = 2 * 3600  # a burn rate looks an hour back, for each point of the scorer's own range
FUTURE = 1800  # the last sample must not be stale before a slow test ends


def series(*pages):
    """{series: [(time, value)]} of the pages, for running_prometheus(samples=...)."""
    lines = [line.rsplit(" ", 1) for page in pages for line in page.strip().splitlines()]
    now = int(time.time())
    times = range(now - PAST, now + FUTURE, STEP)
    return {name.strip(): [(t, value_at(value, t - times[0])) for t in times] for name, value in lines}


def value_at(text, seconds):
    return float(text) * seconds if text.startswith("+") else float(text)


# node exporter: two CPUs of two nodes. https://github.com/prometheus/node_exporter
NODE = """
node_cpu_seconds_total{{job="node-exporter",instance="n1:9100",cpu="0",mode="idle"}} +{idle}
node_cpu_seconds_total{{job="node-exporter",instance="n1:9100",cpu="0",mode="user"}} +{busy}
node_cpu_seconds_total{{job="node-exporter",instance="n2:9100",cpu="0",mode="idle"}} +{idle}
node_cpu_seconds_total{{job="node-exporter",instance="n2:9100",cpu="0",mode="user"}} +{busy}
node_memory_MemTotal_bytes{{job="node-exporter",instance="n1:9100"}} 16e9
node_memory_MemTotal_bytes{{job="node-exporter",instance="n2:9100"}} 16e9
node_memory_MemAvailable_bytes{{job="node-exporter",instance="n1:9100"}} {available}
node_memory_MemAvailable_bytes{{job="node-exporter",instance="n2:9100"}} {available}
"""

# kube-state-metrics: one node, a pod that runs, one that has ended and whose requests are still there, one that waits for a node.
STATE = """
kube_node_status_allocatable{{node="n1",resource="cpu",unit="core"}} 8
kube_node_status_allocatable{{node="n1",resource="memory",unit="byte"}} 32e9
kube_pod_container_resource_requests{{namespace="shop",pod="cart",uid="1",container="c",node="n1",resource="cpu",unit="core"}} {cpu}
kube_pod_container_resource_requests{{namespace="shop",pod="cart",uid="1",container="c",node="n1",resource="memory",unit="byte"}} {memory}
kube_pod_container_resource_requests{{namespace="shop",pod="done",uid="2",container="c",node="n1",resource="cpu",unit="core"}} 8
kube_pod_container_resource_requests{{namespace="shop",pod="done",uid="2",container="c",node="n1",resource="memory",unit="byte"}} 32e9
kube_pod_status_phase{{namespace="shop",pod="cart",uid="1",phase="Running"}} 1
kube_pod_status_phase{{namespace="shop",pod="cart",uid="1",phase="Pending"}} 0
kube_pod_status_phase{{namespace="shop",pod="cart",uid="1",phase="Succeeded"}} 0
kube_pod_status_phase{{namespace="shop",pod="done",uid="2",phase="Running"}} 0
kube_pod_status_phase{{namespace="shop",pod="done",uid="2",phase="Pending"}} 0
kube_pod_status_phase{{namespace="shop",pod="done",uid="2",phase="Succeeded"}} 1
kube_customresource_pending_workloads{{customresource_group="kueue.x-k8s.io",customresource_kind="ClusterQueue",customresource_version="v1beta2",name="a"}} {queued}
"""
WAITING = """
kube_pod_status_phase{{namespace="shop",pod="late-{n}",uid="late-{n}",phase="Pending"}} 1
kube_pod_status_phase{{namespace="shop",pod="late-{n}",uid="late-{n}",phase="Running"}} 0
"""

# DCGM exporter: a whole GPU that has both counters of its use, and an instance of MIG that has one.
# https://github.com/NVIDIA/dcgm-exporter, README.md and etc/default-counters.csv
DCGM = """
DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="GPU-604ac76c",modelName="NVIDIA H100",Hostname="n1"}} {percent}
DCGM_FI_PROF_GR_ENGINE_ACTIVE{{gpu="0",UUID="GPU-604ac76c",modelName="NVIDIA H100",Hostname="n1"}} {ratio}
DCGM_FI_PROF_GR_ENGINE_ACTIVE{{gpu="1",UUID="GPU-9d92044a",modelName="NVIDIA H100",Hostname="n1",GPU_I_ID="1",GPU_I_PROFILE="3g.40gb"}} {ratio}
DCGM_FI_DEV_GPU_UTIL{{gpu="2",UUID="GPU-44e6fe2b",modelName="NVIDIA T4",Hostname="n2"}} {percent}
DCGM_FI_DEV_FB_FREE{{gpu="0",UUID="GPU-604ac76c",modelName="NVIDIA H100",Hostname="n1"}} {free}
DCGM_FI_DEV_FB_USED{{gpu="0",UUID="GPU-604ac76c",modelName="NVIDIA H100",Hostname="n1"}} {used}
"""

# Kepler 0.10: two packages of a node, and zones that overlap with them.
# https://github.com/sustainable-computing-io/kepler, docs/user/metrics.md
KEPLER = """
kepler_node_cpu_watts{{zone="package",path="/sys/class/powercap/intel-rapl:0",node_name="n1"}} {watts}
kepler_node_cpu_watts{{zone="package",path="/sys/class/powercap/intel-rapl:1",node_name="n1"}} {watts}
kepler_node_cpu_watts{{zone="core",path="/sys/class/powercap/intel-rapl:0:0",node_name="n1"}} {watts}
kepler_node_cpu_watts{{zone="psys",path="/sys/class/powercap/intel-rapl:2",node_name="n1"}} 390
"""

# OpenCost. https://opencost.io/docs/integrations/metrics
OPENCOST = """
node_cpu_hourly_cost{{instance="n1",node="n1",instance_type="m5.large",region="r1",provider_id="p1",arch="amd64"}} {cpu}
node_ram_hourly_cost{{instance="n1",node="n1",instance_type="m5.large",region="r1",provider_id="p1",arch="amd64"}} {gib}
node_total_hourly_cost{{instance="n1",node="n1",instance_type="m5.large",region="r1",provider_id="p1",arch="amd64"}} {node}
"""

# blackbox exporter: the second target's probe fails on the bad cluster, and takes no time.
BLACKBOX = """
probe_duration_seconds{{job="latency",instance="https://orders.example"}} {seconds}
probe_success{{job="latency",instance="https://orders.example"}} 1
probe_duration_seconds{{job="latency",instance="https://stock.example"}} 0.01
probe_success{{job="latency",instance="https://stock.example"}} {up}
"""

# A service's own counter, as client libraries' documentation names it. The good cluster has had no error yet, and so no such series.
REQUESTS = """
http_requests_total{job="shop",code="200"} +100
"""
ERRORS = """
http_requests_total{job="shop",code="503"} +0.15
"""

GOOD = (
    NODE.format(idle=0.8, busy=0.2, available=12e9),
    STATE.format(cpu=2, memory=8e9, queued=1),
    WAITING.format(n=0),
    DCGM.format(percent=20, ratio=0.2, free=60000, used=20000),
    KEPLER.format(watts=40),
    OPENCOST.format(cpu=0.02, gib=0.003, node=0.3),
    BLACKBOX.format(seconds=0.05, up=1),
    REQUESTS,
)
BAD = (
    NODE.format(idle=0.1, busy=0.9, available=2e9),
    STATE.format(cpu=7, memory=28e9, queued=15),
    *(WAITING.format(n=n) for n in range(8)),
    DCGM.format(percent=90, ratio=0.9, free=8000, used=72000),
    KEPLER.format(watts=150),
    OPENCOST.format(cpu=0.05, gib=0.008, node=0.2),
    BLACKBOX.format(seconds=0.6, up=0),
    REQUESTS,
    ERRORS,
)
