// Command controller does the hub controller's work as one would write it with controller-runtime: informers for the four kinds, a
// reconciler that probes scorers and writes their status, and one that keeps a ManifestWork for each ManagedCluster.
//
// By default it is as careful as the library allows: its caches keep a hash of what a ManifestWork carries and drop what no one reads,
// reads do not copy, summaries that are the same for many clusters are made once, and answers to writes hold metadata alone. With
// -plain it is as such controllers are usually written: whole objects in the caches, summaries made for each cluster, patches from a
// comparison of two objects.
package main

import (
	"flag"
	"log"
	"log/slog"
	"net/http"
	"os"
	"time"
	"unique"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

var (
	plain     = flag.Bool("plain", false, "as such controllers are usually written")
	namespace = flag.String("namespace", "open-cluster-management", "of scorers and configuration")
	interval  = flag.Duration("health-check-interval", 30*time.Second, "between two probes of a scorer")
	prober    = http.Client{Timeout: 5 * time.Second}
)

// summaryChanges passes on what may change a summary: the spec and the health, no other status.
var summaryChanges = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	was, now := e.ObjectOld.(*DynamicScorer), e.ObjectNew.(*DynamicScorer)
	return was.Generation != now.Generation || was.Status.HealthStatus != now.Status.HealthStatus
}}

// lean keeps of an object what is read from the caches.
func lean(o any) (any, error) {
	switch o := o.(type) {
	case *ManagedCluster:
		o.ManagedFields, o.Labels, o.Annotations, o.Status = nil, nil, nil, ClusterStatus{}
	case *ManifestWork:
		o.ManagedFields = nil
		o.hash, o.states = hashOf(o), report(o)
		o.Spec, o.Status = WorkSpec{}, WorkStatus{}
	}
	return o, nil
}

func cacheOptions() cache.Options {
	if *plain {
		return cache.Options{}
	}
	noCopies := true
	return cache.Options{DefaultTransform: lean, DefaultUnsafeDisableDeepCopy: &noCopies}
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	metrics := flag.String("metrics-bind-address", "0", "host:port")
	qps := flag.Float64("kube-api-qps", 20, "requests a second")
	burst := flag.Int("kube-api-burst", 50, "requests at once")
	workers := flag.Int("workers", 32, "clusters that are looked at at a time")
	flag.Parse()
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	config := ctrl.GetConfigOrDie() // -kubeconfig is its flag
	config.QPS, config.Burst = float32(*qps), *burst
	scheme := runtime.NewScheme()
	addTypes(scheme)
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Cache: cacheOptions(), Metrics: server.Options{BindAddress: *metrics}})
	must(err)
	t := &tally{clusters: map[string][]state{}, scores: map[unique.Handle[string]]*[2]int{}}
	c := &clusters{Client: manager.GetClient(), tally: t, dirty: true, sent: map[string]written{}}
	every := handler.EnqueueRequestsFromMapFunc(c.every)
	must(ctrl.NewControllerManagedBy(manager).For(&DynamicScorer{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 16}).Complete(&scorers{manager.GetClient(), t}))
	must(ctrl.NewControllerManagedBy(manager).For(&ManagedCluster{}).
		Watches(&ManifestWork{}, handler.EnqueueRequestsFromMapFunc(ofWork)).
		Watches(&DynamicScorer{}, every, builder.WithPredicates(summaryChanges)).
		Watches(&DynamicScoringConfig{}, every).
		WithOptions(controller.Options{MaxConcurrentReconciles: *workers}).Complete(c))
	must(manager.Start(ctrl.SetupSignalHandler()))
}
