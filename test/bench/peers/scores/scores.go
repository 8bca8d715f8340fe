// Package scores turns results into dynamic_score gauges of client_golang.
package scores

import (
	"github.com/prometheus/client_golang/prometheus"

	"dynamic-scoring/test/bench/peers/wire"
)

// NewGauge returns the gauge with the nine labels that every score has.
func NewGauge() *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "dynamic_score",
		Help: "Score of a scoring API.",
	}, []string{
		"ds_app", "ds_cluster", "ds_container", "ds_device", "ds_meta",
		"ds_namespace", "ds_node", "ds_pod", "ds_score_name",
	})
}

// Set sets the gauge of each result.
func Set(gauge *prometheus.GaugeVec, cluster, name string, results []wire.Result) {
	for _, r := range results {
		gauge.With(prometheus.Labels{
			"ds_app":        r.Metric["app"],
			"ds_cluster":    cluster,
			"ds_container":  r.Metric["container"],
			"ds_device":     r.Metric["device"],
			"ds_meta":       r.Metric["meta"],
			"ds_namespace":  r.Metric["namespace"],
			"ds_node":       r.Metric["node"],
			"ds_pod":        r.Metric["pod"],
			"ds_score_name": name,
		}).Set(r.Score)
	}
}
