package main

import (
	"encoding/json"
	"slices"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds as their projects' own Go types hold them, less what no one here reads or writes.

type (
	DynamicScorer struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec              ScorerSpec   `json:"spec"`
		Status            ScorerStatus `json:"status,omitempty"`
	}
	ScorerSpec struct {
		Description          string  `json:"description"`
		ConfigURL            string  `json:"configURL"`
		ConfigSyncMode       string  `json:"configSyncMode"`
		Location             string  `json:"location,omitempty"`
		ScoreDestination     string  `json:"scoreDestination,omitempty"`
		ScoreDimensionFormat string  `json:"scoreDimensionFormat,omitempty"`
		Source               Source  `json:"source,omitempty"`
		Scoring              Scoring `json:"scoring,omitempty"`
	}
	Source struct {
		Type   string `json:"type,omitempty"`
		Host   string `json:"host,omitempty"`
		Path   string `json:"path,omitempty"`
		Params struct {
			Query string `json:"query"`
			Range int    `json:"range"`
			Step  int    `json:"step"`
		} `json:"params,omitempty"`
	}
	Scoring struct {
		Host   string `json:"host,omitempty"`
		Path   string `json:"path,omitempty"`
		Params struct {
			Name     string `json:"name"`
			Interval int    `json:"interval"`
		} `json:"params,omitempty"`
	}
	ScorerStatus struct {
		HealthStatus    string `json:"healthStatus"`
		ScoringClusters int    `json:"scoringClusters"`
		FailingClusters int    `json:"failingClusters"`
	}

	DynamicScoringConfig struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec              struct {
			Masks []Mask `json:"masks,omitempty"`
		} `json:"spec"`
	}
	Mask struct {
		ClusterName string `json:"clusterName"`
		ScoreName   string `json:"scoreName"`
	}

	ManagedCluster struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec              struct {
			HubAcceptsClient bool `json:"hubAcceptsClient"`
		} `json:"spec"`
		Status ClusterStatus `json:"status,omitempty"`
	}
	ClusterStatus struct {
		Conditions            []metav1.Condition `json:"conditions,omitempty"`
		Capacity, Allocatable map[string]string
		ClusterClaims         []struct{ Name, Value string } `json:"clusterClaims,omitempty"`
	}

	ManifestWork struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata,omitempty"`
		Spec              WorkSpec   `json:"spec"`
		Status            WorkStatus `json:"status,omitempty"`

		hash   uint64  // lean: of the manifests, which are not kept
		states []state // lean: of the feedback, which is not kept
	}
	WorkSpec struct {
		Workload struct {
			Manifests []runtime.RawExtension `json:"manifests,omitempty"`
		} `json:"workload,omitempty"`
		ManifestConfigs []ManifestConfig `json:"manifestConfigs,omitempty"`
	}
	ManifestConfig struct {
		ResourceIdentifier struct {
			Group     string `json:"group"`
			Resource  string `json:"resource"`
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"resourceIdentifier"`
		FeedbackRules  []FeedbackRule    `json:"feedbackRules,omitempty"`
		UpdateStrategy map[string]string `json:"updateStrategy,omitempty"`
	}
	FeedbackRule struct {
		Type      string              `json:"type"`
		JSONPaths []map[string]string `json:"jsonPaths,omitempty"`
	}
	WorkStatus struct {
		Conditions     []metav1.Condition `json:"conditions,omitempty"`
		ResourceStatus struct {
			Manifests []ManifestStatus `json:"manifests,omitempty"`
		} `json:"resourceStatus,omitempty"`
	}
	ManifestStatus struct {
		Conditions     []metav1.Condition `json:"conditions,omitempty"`
		StatusFeedback struct {
			Values []struct {
				Name       string `json:"name"`
				FieldValue struct {
					String *string `json:"string,omitempty"`
				} `json:"fieldValue"`
			} `json:"values,omitempty"`
		} `json:"statusFeedback,omitempty"`
	}

	DynamicScorerList        = list[DynamicScorer, *DynamicScorer]
	DynamicScoringConfigList = list[DynamicScoringConfig, *DynamicScoringConfig]
	ManagedClusterList       = list[ManagedCluster, *ManagedCluster]
	ManifestWorkList         = list[ManifestWork, *ManifestWork]
)

type list[T any, P interface {
	*T
	copyTo(*T)
}] struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []T `json:"items"`
}

func (l *list[T, P]) DeepCopyObject() runtime.Object {
	c := &list[T, P]{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy(), Items: make([]T, len(l.Items))}
	for i := range l.Items {
		P(&l.Items[i]).copyTo(&c.Items[i])
	}
	return c
}

func copyOf[T any](copyTo func(*T)) *T {
	c := new(T)
	copyTo(c)
	return c
}

func (s *DynamicScorer) copyTo(c *DynamicScorer) {
	*c = *s
	s.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
}

func (s *DynamicScoringConfig) copyTo(c *DynamicScoringConfig) {
	*c = *s
	s.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Spec.Masks = slices.Clone(s.Spec.Masks)
}

func (s *ManagedCluster) copyTo(c *ManagedCluster) {
	*c = *s // no one changes a status
	s.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
}

func (s *ManifestWork) copyTo(c *ManifestWork) {
	*c = *s // nor this one
	s.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Spec.Workload.Manifests = make([]runtime.RawExtension, len(s.Spec.Workload.Manifests))
	for i := range s.Spec.Workload.Manifests {
		s.Spec.Workload.Manifests[i].DeepCopyInto(&c.Spec.Workload.Manifests[i])
	}
	c.Spec.ManifestConfigs = slices.Clone(s.Spec.ManifestConfigs)
}

func (s *DynamicScorer) DeepCopyObject() runtime.Object        { return copyOf(s.copyTo) }
func (s *DynamicScoringConfig) DeepCopyObject() runtime.Object { return copyOf(s.copyTo) }
func (s *ManagedCluster) DeepCopyObject() runtime.Object       { return copyOf(s.copyTo) }
func (s *ManifestWork) DeepCopyObject() runtime.Object         { return copyOf(s.copyTo) }

func addTypes(s *runtime.Scheme) {
	add := func(group, version string, types map[string]runtime.Object) {
		gv := schema.GroupVersion{Group: group, Version: version}
		for kind, object := range types {
			s.AddKnownTypeWithName(gv.WithKind(kind), object)
		}
		metav1.AddToGroupVersion(s, gv)
	}
	add("dynamic-scoring.open-cluster-management.io", "v1alpha1", map[string]runtime.Object{
		"DynamicScorer": &DynamicScorer{}, "DynamicScorerList": &DynamicScorerList{},
		"DynamicScoringConfig": &DynamicScoringConfig{}, "DynamicScoringConfigList": &DynamicScoringConfigList{}})
	add("cluster.open-cluster-management.io", "v1", map[string]runtime.Object{
		"ManagedCluster": &ManagedCluster{}, "ManagedClusterList": &ManagedClusterList{}})
	add("work.open-cluster-management.io", "v1", map[string]runtime.Object{
		"ManifestWork": &ManifestWork{}, "ManifestWorkList": &ManifestWorkList{}})
}

// state is how one score fares on one cluster.
type state struct {
	score unique.Handle[string]
	fails bool
}

// report reads what the agent says of its scorers.
func report(w *ManifestWork) (states []state) {
	for _, m := range w.Status.ResourceStatus.Manifests {
		for _, v := range m.StatusFeedback.Values {
			var said struct {
				Scorers []struct{ ScoreName, State string }
			}
			if v.FieldValue.String == nil || json.Unmarshal([]byte(*v.FieldValue.String), &said) != nil {
				continue
			}
			for _, s := range said.Scorers {
				states = append(states, state{unique.Make(s.ScoreName), s.State == "failing" || s.State == "stale"})
			}
		}
	}
	return states
}
