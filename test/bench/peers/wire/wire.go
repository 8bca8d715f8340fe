// Package wire holds the messages of one scoring round as a Go agent would declare them.
package wire

// Series is one series of a range query's answer.
type Series struct {
	Metric map[string]string `json:"metric"`
	Values [][]interface{}   `json:"values"`
}

// QueryAnswer is what Prometheus answers to query_range.
type QueryAnswer struct {
	Status string `json:"status"`
	Data   struct {
		ResultType string   `json:"resultType"`
		Result     []Series `json:"result"`
	} `json:"data"`
}

// ScoringRequest is what the scoring API is asked.
type ScoringRequest struct {
	Data []Series `json:"data"`
}

// Result is one score.
type Result struct {
	Metric map[string]string `json:"metric"`
	Score  float64           `json:"score"`
}

// ScoringAnswer is what the scoring API answers.
type ScoringAnswer struct {
	Results []Result `json:"results"`
}
