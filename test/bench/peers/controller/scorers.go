package main

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"unique"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tally counts on how many clusters each score is computed and fails.
type tally struct {
	mu       sync.Mutex
	clusters map[string][]state
	scores   map[unique.Handle[string]]*[2]int
}

func (t *tally) count(states []state, by int) {
	for _, s := range states {
		if t.scores[s.score] == nil {
			t.scores[s.score] = new([2]int)
		}
		if s.fails {
			t.scores[s.score][1] += by
		} else {
			t.scores[s.score][0] += by
		}
	}
}

func (t *tally) set(cluster string, states []state) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if was := t.clusters[cluster]; !slices.Equal(was, states) {
		t.count(was, -1)
		t.count(states, 1)
		t.clusters[cluster] = states
	}
}

func (t *tally) of(score string) (scoring, failing int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.scores[unique.Make(score)]; n != nil {
		return n[0], n[1]
	}
	return 0, 0
}

type scorers struct {
	client.Client
	tally *tally
}

func healthy(ctx context.Context, configURL string) bool {
	u, err := url.Parse(configURL)
	if err != nil {
		return false
	}
	u.Path = "/healthz"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return false
	}
	answer, err := prober.Do(request)
	if err != nil {
		return false
	}
	answer.Body.Close()
	return answer.StatusCode/100 == 2
}

func (r *scorers) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var s DynamicScorer
	if err := r.Get(ctx, request.NamespacedName, &s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	status := ScorerStatus{HealthStatus: "Inactive"}
	if healthy(ctx, s.Spec.ConfigURL) {
		status.HealthStatus = "Active"
	}
	status.ScoringClusters, status.FailingClusters = r.tally.of(s.Spec.Scoring.Params.Name)
	if status != s.Status {
		now := copyOf(s.copyTo)
		now.Status = status
		if err := r.Status().Patch(ctx, now, client.MergeFrom(&s)); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	return ctrl.Result{RequeueAfter: *interval}, nil
}
