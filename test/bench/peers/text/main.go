// Command text serves a page of many dynamic_score series as promhttp does it at each scrape: gather, encode, and, in
// the second line, compress.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"dynamic-scoring/test/bench/peers/measure"
	"dynamic-scoring/test/bench/peers/scores"
	"dynamic-scoring/test/bench/peers/wire"
)

// discard is a client that reads everything and keeps nothing.
type discard struct {
	header http.Header
	status int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(status int)      { d.status = status }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }

func scrape(page http.Handler, encoding string) {
	request, err := http.NewRequest(http.MethodGet, "/metrics", nil)
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", encoding)
	client := &discard{header: http.Header{}, status: http.StatusOK}
	page.ServeHTTP(client, request)
	if client.status != http.StatusOK {
		log.Fatalf("scrape: status %d", client.status)
	}
}

func main() {
	series := flag.Int("series", 100000, "how many series")
	n := flag.Int("n", 5, "how often")
	flag.Parse()

	results := make([]wire.Result, *series)
	for i := range results {
		results[i] = wire.Result{
			Metric: map[string]string{
				"node":      fmt.Sprintf("node-%03d.example.internal", i%100),
				"namespace": fmt.Sprintf("namespace-%d", i%37),
				"pod":       fmt.Sprintf("deployment-%d-%08x-abcde", i%500, i),
				"container": "main",
				"meta":      "mean",
			},
			Score: float64(i) * 1.001,
		}
	}
	gauge := scores.NewGauge()
	scores.Set(gauge, "cluster-1", "sample_my_score", results)
	registry := prometheus.NewRegistry()
	registry.MustRegister(gauge)
	page := promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	measure.Run("text", *n, func() { scrape(page, "identity") })
	measure.Run("text_gzip", *n, func() { scrape(page, "gzip") })
}
