// Command splice makes the scoring request from a query_range answer as a straightforward Go agent does: decode the
// whole, encode the series again.
package main

import (
	"encoding/json"
	"flag"
	"log"

	"dynamic-scoring/test/bench/peers/measure"
	"dynamic-scoring/test/bench/peers/wire"
)

func main() {
	file := flag.String("file", "", "a query_range `answer`")
	n := flag.Int("n", 5, "how often")
	flag.Parse()

	body := measure.File(*file)
	measure.Run("splice", *n, func() {
		var answer wire.QueryAnswer
		if err := json.Unmarshal(body, &answer); err != nil {
			log.Fatal(err)
		}
		if _, err := json.Marshal(wire.ScoringRequest{Data: answer.Data.Result}); err != nil {
			log.Fatal(err)
		}
	})
}
