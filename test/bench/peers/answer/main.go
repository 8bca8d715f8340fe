// Command answer turns a scoring answer into client_golang gauges: decode, then set each. The series are there from the
// first run on, as in an agent after its first round.
package main

import (
	"encoding/json"
	"flag"
	"log"

	"dynamic-scoring/test/bench/peers/measure"
	"dynamic-scoring/test/bench/peers/scores"
	"dynamic-scoring/test/bench/peers/wire"
)

func main() {
	file := flag.String("file", "", "a scoring `answer`")
	n := flag.Int("n", 5, "how often")
	flag.Parse()

	body := measure.File(*file)
	gauge := scores.NewGauge()
	measure.Run("answer", *n, func() {
		var answer wire.ScoringAnswer
		if err := json.Unmarshal(body, &answer); err != nil {
			log.Fatal(err)
		}
		scores.Set(gauge, "cluster-1", "sample_my_score", answer.Results)
	})
}
