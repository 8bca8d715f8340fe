// Command agent is a minimal agent as one would write it in Go: one scorer, its rounds one after the other, its scores
// on /metrics. At its end, after -rounds or at SIGTERM, it prints the line of package measure: CPU time of one round,
// the heap that the runtime holds, and the peak resident memory.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"dynamic-scoring/test/bench/peers/measure"
	"dynamic-scoring/test/bench/peers/scores"
	"dynamic-scoring/test/bench/peers/wire"
)

var client = http.Client{Timeout: 30 * time.Second}

// read decodes an answer's body when its status is 200.
func read(answer *http.Response, into any) error {
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", answer.Request.URL, answer.Status)
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

func round(source, scoring string, gauge *prometheus.GaugeVec) error {
	answer, err := client.Get(source)
	if err != nil {
		return err
	}
	var series wire.QueryAnswer
	if err := read(answer, &series); err != nil {
		return err
	}
	body, err := json.Marshal(wire.ScoringRequest{Data: series.Data.Result})
	if err != nil {
		return err
	}
	answer, err = client.Post(scoring, "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	var scored wire.ScoringAnswer
	if err := read(answer, &scored); err != nil {
		return err
	}
	scores.Set(gauge, "cluster-1", "sample_my_score", scored.Results)
	return nil
}

func main() {
	source := flag.String("source", "", "`URL` of the query, whole")
	scoring := flag.String("scoring", "", "`URL` of the scoring API")
	listen := flag.String("listen", "127.0.0.1:8080", "`address` of /metrics")
	rounds := flag.Int("rounds", 0, "end after so many; 0: at SIGTERM only")
	interval := flag.Duration("interval", 0, "pause between rounds")
	flag.Parse()

	gauge := scores.NewGauge()
	prometheus.MustRegister(gauge)
	http.Handle("/metrics", promhttp.Handler())
	go func() { log.Fatal(http.ListenAndServe(*listen, nil)) }()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, os.Interrupt)

	start, done := measure.CPU(), 0
	for *source != "" && (*rounds == 0 || done < *rounds) && len(stop) == 0 {
		if err := round(*source, *scoring, gauge); err != nil {
			log.Fatal(err)
		}
		done++
		select {
		case s := <-stop:
			stop <- s
		case <-time.After(*interval):
		}
	}
	if *rounds == 0 {
		<-stop
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	measure.Print("agent", (measure.CPU()-start)/time.Duration(max(done, 1)), memory.HeapSys)
}
