package main

import (
	"context"
	"encoding/json"
	"hash/maphash"
	"log"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	workName   = "dynamic-scoring-config-manifestwork"
	configName = "dynamic-scoring-config"
	managedBy  = "dynamic-scoring.open-cluster-management.io/managed-by"
	agentSpace = "dynamic-scoring"
)

var seed = maphash.MakeSeed()

// ---- Summaries ----

type summary struct {
	Name                 string `json:"name"`
	ScoreName            string `json:"scoreName"`
	SourceType           string `json:"sourceType"`
	SourceEndpoint       string `json:"sourceEndpoint"`
	SourceAuthName       string `json:"sourceEndpointAuthName"`
	SourceAuthKey        string `json:"sourceEndpointAuthKey"`
	SourceQuery          string `json:"sourceQuery"`
	SourceRange          int    `json:"sourceRange"`
	SourceStep           int    `json:"sourceStep"`
	ScoringEndpoint      string `json:"scoringEndpoint"`
	ScoringInterval      int    `json:"scoringInterval"`
	ScoringAuthName      string `json:"scoringEndpointAuthName"`
	ScoringAuthKey       string `json:"scoringEndpointAuthKey"`
	Location             string `json:"location"`
	ScoreDestination     string `json:"scoreDestination"`
	ScoreDimensionFormat string `json:"scoreDimensionFormat"`
}

func (m *Mask) hides(cluster, score string) bool {
	a, _ := path.Match(m.ClusterName, cluster)
	b, _ := path.Match(m.ScoreName, score)
	return a && b
}

// workFor makes the work that a cluster is to have. False while a scorer has not been probed: what is written would soon be changed.
func workFor(cluster string, all []DynamicScorer, masks []Mask) (*ManifestWork, bool) {
	list := []summary{}
	for i := range all {
		s := &all[i]
		score := s.Spec.Scoring.Params.Name
		if s.Status.HealthStatus == "" {
			return nil, false
		}
		hidden := slices.ContainsFunc(masks, func(m Mask) bool { return m.hides(cluster, score) })
		if s.Status.HealthStatus == "Active" && !hidden {
			list = append(list, summary{
				Name: s.Name, ScoreName: score, SourceType: s.Spec.Source.Type, SourceEndpoint: s.Spec.Source.Host + s.Spec.Source.Path,
				SourceQuery: s.Spec.Source.Params.Query, SourceRange: s.Spec.Source.Params.Range, SourceStep: s.Spec.Source.Params.Step,
				ScoringEndpoint: s.Spec.Scoring.Host + s.Spec.Scoring.Path, ScoringInterval: s.Spec.Scoring.Params.Interval,
				Location: s.Spec.Location, ScoreDestination: s.Spec.ScoreDestination, ScoreDimensionFormat: s.Spec.ScoreDimensionFormat})
		}
	}
	slices.SortFunc(list, func(a, b summary) int { return strings.Compare(a.ScoreName, b.ScoreName) })
	summaries, _ := json.Marshal(list)
	config, _ := json.Marshal(configMap("dynamic-scoring-config", map[string]string{"summaries": string(summaries)}))
	status, _ := json.Marshal(configMap("dynamic-scoring-status", nil))
	w := &ManifestWork{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: workName, Labels: map[string]string{managedBy: "peer"}}}
	w.Spec.Workload.Manifests = []runtime.RawExtension{{Raw: config}, {Raw: status}}
	c := ManifestConfig{UpdateStrategy: map[string]string{"type": "ReadOnly"}, FeedbackRules: []FeedbackRule{
		{Type: "JSONPaths", JSONPaths: []map[string]string{{"name": "status", "path": ".data.status"}}}}}
	c.ResourceIdentifier.Resource, c.ResourceIdentifier.Name, c.ResourceIdentifier.Namespace = "configmaps", "dynamic-scoring-status", agentSpace
	w.Spec.ManifestConfigs = []ManifestConfig{c}
	w.hash = hashOf(w)
	return w, true
}

func configMap(name string, data map[string]string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]string{"name": name, "namespace": agentSpace}, "data": data}
}

func hashOf(w *ManifestWork) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, m := range w.Spec.Workload.Manifests {
		h.Write(m.Raw)
	}
	return h.Sum64()
}

// ---- Works ----

type clusters struct {
	client.Client
	tally *tally

	mu    sync.Mutex
	dirty bool
	all   []DynamicScorer
	masks []Mask
	made  *ManifestWork // what all clusters get that no mask names
	ready bool
	patch []byte // to it
	sent  map[string]written
}

// written is what a cluster was last sent: the cache may be long behind.
type written struct {
	hash    uint64
	version int64
}

func (r *clusters) wrote(cluster string, w written) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent[cluster] = w
}

// hashOf is that of what the cluster has: as the cache says, or as it was last sent when that is newer.
func (r *clusters) hashOf(work *ManifestWork) uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	cached, _ := strconv.ParseInt(work.ResourceVersion, 10, 64)
	if w, ok := r.sent[work.Namespace]; ok && w.version > cached {
		return w.hash
	}
	return work.hash
}

func (r *clusters) load(ctx context.Context) (all []DynamicScorer, masks []Mask, err error) {
	var list DynamicScorerList
	var config DynamicScoringConfig
	if err = r.List(ctx, &list, client.InNamespace(*namespace)); err != nil {
		return nil, nil, err
	}
	err = client.IgnoreNotFound(r.Get(ctx, types.NamespacedName{Namespace: *namespace, Name: configName}, &config))
	return list.Items, config.Spec.Masks, err
}

// wanted is the cluster's work and, where it has been made for others already, the patch.
func (r *clusters) wanted(ctx context.Context, cluster string) (*ManifestWork, []byte, bool, error) {
	if *plain {
		all, masks, err := r.load(ctx)
		w, ready := workFor(cluster, all, masks)
		return w, nil, ready, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dirty {
		all, masks, err := r.load(ctx)
		if err != nil {
			return nil, nil, false, err
		}
		r.all, r.masks, r.dirty = all, masks, false
		if r.made, r.ready = workFor("", all, nil); r.ready {
			r.patch, _ = json.Marshal(map[string]any{"spec": r.made.Spec})
		}
	}
	named := slices.ContainsFunc(r.masks, func(m Mask) bool { ok, _ := path.Match(m.ClusterName, cluster); return ok })
	if r.ready && named {
		w, _ := workFor(cluster, r.all, r.masks)
		patch, err := json.Marshal(map[string]any{"spec": w.Spec})
		return w, patch, true, err
	}
	return r.made, r.patch, r.ready, nil
}

func (r *clusters) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var cluster ManagedCluster
	var work ManifestWork
	name := request.Name
	foundWork := r.Get(ctx, types.NamespacedName{Namespace: name, Name: workName}, &work)
	if client.IgnoreNotFound(foundWork) != nil {
		return ctrl.Result{}, foundWork
	}
	err := r.Get(ctx, request.NamespacedName, &cluster)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if err != nil || cluster.DeletionTimestamp != nil || !cluster.Spec.HubAcceptsClient {
		r.tally.set(name, nil)
		if foundWork == nil {
			err = r.Delete(ctx, &work)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	states, hash := work.states, r.hashOf(&work)
	if *plain {
		states, hash = report(&work), hashOf(&work)
	}
	r.tally.set(name, states)
	want, patch, ready, err := r.wanted(ctx, name)
	switch {
	case err != nil:
	case !ready:
		return ctrl.Result{RequeueAfter: time.Second}, nil
	case errors.IsNotFound(foundWork):
		w := *want
		w.Namespace = name
		err = r.Create(ctx, &w)
	case hash == want.hash:
	case *plain:
		was := copyOf(work.copyTo)
		work.Spec = want.Spec
		err = r.Patch(ctx, &work, client.MergeFrom(was))
	default:
		answer := metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "work.open-cluster-management.io/v1", Kind: "ManifestWork"},
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: workName}}
		if err = r.Patch(ctx, &answer, client.RawPatch(types.MergePatchType, patch)); err == nil {
			version, _ := strconv.ParseInt(answer.ResourceVersion, 10, 64)
			r.wrote(name, written{want.hash, version})
		}
	}
	return ctrl.Result{}, err
}

func (r *clusters) every(ctx context.Context, _ client.Object) (requests []ctrl.Request) {
	r.mu.Lock()
	r.dirty = true
	r.mu.Unlock()
	var list ManagedClusterList
	if err := r.List(ctx, &list); err != nil {
		log.Print(err)
	}
	for i := range list.Items {
		requests = append(requests, ctrl.Request{NamespacedName: types.NamespacedName{Name: list.Items[i].Name}})
	}
	return requests
}

func ofWork(_ context.Context, o client.Object) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Name: o.GetNamespace()}}}
}
