// Command encode makes remote-write requests of a scoring answer's series as Prometheus does: its own protobuf types, 10,000
// series a request, marshalled and compressed by snappy, each round anew. Labels are made once, outside of what is timed.
package main

import (
	"encoding/json"
	"flag"
	"log"
	"sort"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"

	"dynamic-scoring/test/bench/peers/measure"
	"dynamic-scoring/test/bench/peers/wire"
)

const perRequest = 10000

func labels(metric map[string]string) []prompb.Label {
	list := []prompb.Label{
		{Name: "__name__", Value: "dynamic_score"},
		{Name: "ds_cluster", Value: "cluster-1"},
		{Name: "ds_score_name", Value: "sample_my_score"},
	}
	for _, name := range []string{"app", "container", "device", "meta", "namespace", "node", "pod"} {
		if metric[name] != "" {
			list = append(list, prompb.Label{Name: "ds_" + name, Value: metric[name]})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

func main() {
	file := flag.String("file", "", "a scoring `answer`")
	n := flag.Int("n", 20, "how often")
	flag.Parse()

	var answer wire.ScoringAnswer
	if err := json.Unmarshal(measure.File(*file), &answer); err != nil {
		log.Fatal(err)
	}
	series := make([]prompb.TimeSeries, len(answer.Results))
	for i, r := range answer.Results {
		series[i] = prompb.TimeSeries{Labels: labels(r.Metric), Samples: make([]prompb.Sample, 1)}
	}
	var packed, compressed []byte
	round := int64(0)
	measure.Run("encode", *n, func() {
		round++
		for at := 0; at < len(series); at += perRequest {
			part := series[at:min(at+perRequest, len(series))]
			for i := range part {
				part[i].Samples[0] = prompb.Sample{Value: answer.Results[at+i].Score + float64(round), Timestamp: round * 30000}
			}
			request := prompb.WriteRequest{Timeseries: part}
			size := request.Size()
			if cap(packed) < size {
				packed = make([]byte, size)
			}
			m, err := request.MarshalToSizedBuffer(packed[:size])
			if err != nil {
				log.Fatal(err)
			}
			compressed = snappy.Encode(compressed[:cap(compressed)], packed[:m])
		}
	})
}
