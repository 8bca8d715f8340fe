"""An application with OpenTelemetry's SDK for Python: metrics.py URL; exits with 0 if all was received."""

import sys

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource


class Watched(OTLPMetricExporter):
    failed = False

    def export(self, *args, **more):
        result = super().export(*args, **more)
        Watched.failed |= result.value != 0
        return result


exporter = Watched(endpoint=sys.argv[1], compression=Compression.Gzip)
resource = Resource.create(
    {
        "service.name": "shop",
        "service.namespace": "web",
        "service.instance.id": "python-1",
        "k8s.node.name": "node-1",
        "k8s.pod.name": "shop-0",
    }
)
provider = MeterProvider([PeriodicExportingMetricReader(exporter, export_interval_millis=3600_000)], resource)
meter = provider.get_meter("shop.orders", "1.2")
orders = meter.create_counter("orders.placed", unit="{order}", description="Orders")
stock = meter.create_up_down_counter("stock.items")
seconds = meter.create_histogram("order.duration", unit="s")
meter.create_observable_gauge("load", callbacks=[lambda _: [Observation(0.25, {"cpu": 0}), Observation(1.5, {"cpu": 1})]])
meter.create_observable_counter("disk.io", unit="By", callbacks=[lambda _: [Observation(2**40, {"device": "sda"})]])
for i in range(3):
    orders.add(2, {"http.route": "/orders", "paid": True})
    orders.add(1, {"http.route": "/orders", "paid": False, "tags": ["a", "b"]})
    stock.add(-i, {"ware": "größe"})
    seconds.record(0.004 * 10**i, {"http.route": "/orders"})
    if not provider.force_flush() or Watched.failed:
        sys.exit("the export failed")
provider.shutdown()
