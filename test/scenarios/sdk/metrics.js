// An application with OpenTelemetry's SDK for JavaScript: metrics.js URL http|proto; exits with 0 if all was received.
const { createRequire } = require('module');
const load = createRequire(process.cwd() + '/');
const { MeterProvider, PeriodicExportingMetricReader } = load('@opentelemetry/sdk-metrics');
const { OTLPMetricExporter } = load(`@opentelemetry/exporter-metrics-otlp-${process.argv[3]}`);
const { resourceFromAttributes } = load('@opentelemetry/resources');

const exporter = new OTLPMetricExporter({ url: process.argv[2], compression: 'gzip' });
let failed = null;
const original = exporter.export.bind(exporter);
exporter.export = (metrics, done) => original(metrics, (result) => {
  failed = result.code === 0 ? failed : result.error;
  done(result);
});
const provider = new MeterProvider({
  resource: resourceFromAttributes({ 'service.name': 'cart', 'service.instance.id': process.argv[3], 'host.name': 'h1' }),
  readers: [new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3600000 })],
});
const meter = provider.getMeter('cart');

async function main() {
  const hits = meter.createCounter('cart.hits', { unit: '1' });
  const size = meter.createHistogram('cart.size', { unit: 'By' });
  meter.createObservableGauge('cart.fill', { unit: '1' }).addCallback((r) => r.observe(0.5, { zone: 'a-1' }));
  meter.createUpDownCounter('cart.open').add(-3, { 'user.kind': 'guest' });
  for (let i = 0; i < 3; i++) {
    hits.add(5, { 'http.request.method': 'GET', ok: i === 0 });
    size.record(1000 * i + 0.5);
    await provider.forceFlush();
  }
  await provider.shutdown();
  if (failed) throw failed;
}
main().catch((e) => { console.error(e); process.exit(1); });
