package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

const (
	namespace = "open-cluster-management"
	addonName = "dynamic-scoring-framework"
)

func must(_ *object, err error) {
	if err != nil {
		panic(err)
	}
}

func cluster(i int) string { return fmt.Sprintf("cluster-%05d", i) }

func condition(kind, status, reason, message string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": message,
		"lastTransitionTime": "2026-11-01T08:00:00Z"}
}

func addCluster(i int) {
	name := cluster(i)
	must(clusters.create("", text(map[string]any{
		"metadata": map[string]any{"name": name, "labels": map[string]any{"vendor": "Kubernetes", "cloud": "Amazon",
			"cluster.open-cluster-management.io/clusterset": "default"},
			"finalizers": []any{"cluster.open-cluster-management.io/api-resource-cleanup"}},
		"spec": map[string]any{"hubAcceptsClient": true, "leaseDurationSeconds": 60,
			"managedClusterClientConfigs": []any{map[string]any{"url": "https://" + name + ".example.internal:6443"}}},
	})))
	must(clusters.patch("/"+name, text(map[string]any{"status": map[string]any{
		"capacity":      map[string]any{"cpu": "96", "memory": "395628076Ki", "pods": "750"},
		"allocatable":   map[string]any{"cpu": "94500m", "memory": "391123Mi", "pods": "750"},
		"version":       map[string]any{"kubernetes": "v1.36.0"},
		"clusterClaims": []any{map[string]any{"name": "id.k8s.io", "value": name}, map[string]any{"name": "region", "value": "eu-1"}},
		"conditions": []any{
			condition("HubAcceptedManagedCluster", "True", "HubClusterAdminAccepted", "Accepted by hub cluster admin"),
			condition("ManagedClusterJoined", "True", "ManagedClusterJoined", "Managed cluster joined"),
			condition("ManagedClusterConditionAvailable", "True", "ManagedClusterAvailable", "Managed cluster is available")},
	}}), true))
}

// addAddon makes one as the addon-manager leaves it.
func addAddon(i int) {
	const template = "dynamic-scoring-framework-1.0.0"
	name := cluster(i)
	must(addons.create(name, text(map[string]any{
		"metadata": map[string]any{"name": addonName, "finalizers": []any{"addon.open-cluster-management.io/addon-pre-delete"},
			"ownerReferences": []any{map[string]any{"apiVersion": ocmAddon + "/v1alpha1", "kind": "ClusterManagementAddOn", "name": addonName}}},
		"spec": map[string]any{},
	})))
	must(addons.patch(name+"/"+addonName, text(map[string]any{"status": map[string]any{
		"namespace": "dynamic-scoring", "healthCheck": map[string]any{"mode": "Customized"},
		"configReferences": []any{map[string]any{"group": ocmAddon, "resource": "addontemplates", "name": template,
			"desiredConfig":     map[string]any{"name": template, "specHash": strings.Repeat("0123456789abcdef", 4)},
			"lastAppliedConfig": map[string]any{"name": template, "specHash": strings.Repeat("0123456789abcdef", 4)}}},
		"registrations": []any{map[string]any{"signerName": "kubernetes.io/kube-apiserver-client", "subject": map[string]any{
			"user":   "system:open-cluster-management:cluster:" + name + ":addon:" + addonName + ":agent:x",
			"groups": []any{"system:open-cluster-management:cluster:" + name + ":addon:" + addonName}}}},
		"conditions": []any{
			condition("Configured", "True", "ConfigurationsConfigured", "Configurations configured"),
			condition("RegistrationApplied", "True", "SetPermissionApplied", "Registration of the addon agent is configured"),
			condition("ManifestApplied", "True", "AddonManifestApplied", "manifests of addon are applied successfully"),
			condition("Available", "True", "ProbeAvailable", "dynamic-scoring-framework add-on is available")},
	}}), true))
}

// addScorer makes one whose summary has about 800 bytes.
func addScorer(i int, configURL string) {
	query := fmt.Sprintf(`avg by (node, namespace) (rate(container_cpu_usage_seconds_total{job="kubelet",image!="",container!="POD",`+
		`namespace!~"kube-system|openshift-.*",zone="zone-%03d"}[5m])) / on (node) group_left () `+
		`avg by (node) (kube_node_status_allocatable{resource="cpu",unit="core",job="kube-state-metrics"})`, i)
	must(scorers.create(namespace, text(map[string]any{
		"metadata": map[string]any{"name": fmt.Sprintf("scorer-%03d", i)},
		"spec": map[string]any{
			"description": "Rates the nodes of a cluster by the load that is to be expected", "configURL": configURL, "configSyncMode": "None",
			"location": "Internal", "scoreDestination": "AddOnPlacementScore", "scoreDimensionFormat": "${node};${namespace}",
			"source": map[string]any{"type": "Prometheus", "host": "http://prometheus.monitoring.svc.cluster.local:9090", "path": "/api/v1/query_range",
				"params": map[string]any{"query": query, "range": 3600, "step": 60}},
			"scoring": map[string]any{"host": "http://scorer.dynamic-scoring.svc.cluster.local:8000", "path": "/scoring",
				"params": map[string]any{"name": fmt.Sprintf("node_load_score_%03d", i), "interval": 60}},
		},
	})))
}

func populate(nClusters, nScorers int, configURL string) {
	for i := range nClusters {
		addCluster(i)
		addAddon(i)
	}
	for i := range nScorers {
		addScorer(i, configURL)
	}
	must(configs.create(namespace, `{"metadata":{"name":"dynamic-scoring-config"},"spec":{"masks":[]}}`))
}

// ---- What happens to the fleet ----

// changeScorer gives the scorer's query another range.
func changeScorer(name string, seconds int) error {
	_, err := scorers.patch(namespace+"/"+name, fmt.Sprintf(`{"spec":{"source":{"params":{"range":%d}}}}`, seconds), false)
	return err
}

// mask takes a score away from the clusters that the pattern names.
func mask(clusterPattern, score string) error {
	_, err := configs.patch(namespace+"/dynamic-scoring-config", text(map[string]any{"spec": map[string]any{
		"masks": []any{map[string]any{"clusterName": clusterPattern, "scoreName": score}}}}), false)
	return err
}

// feedbackOf finds what the work asks for: the ConfigMap and the value's name.
func feedbackOf(work *object) (configMap, value string) {
	spec := members(work.member(`"spec"`))
	var configs []struct {
		ResourceIdentifier struct{ Name string }
		FeedbackRules      []struct{ JSONPaths []struct{ Name string } }
	}
	if i := find(spec, `"manifestConfigs"`); i >= 0 {
		_ = json.Unmarshal([]byte(spec[i].value), &configs)
	}
	for _, c := range configs {
		for _, rule := range c.FeedbackRules {
			for _, path := range rule.JSONPaths {
				return c.ResourceIdentifier.Name, path.Name
			}
		}
	}
	return "", ""
}

// agentReport is what an agent says of its scorers; on each hundredth cluster one fails.
func agentReport(nth, scores int) string {
	now := time.Now().Add(-time.Duration(nth*37) * time.Millisecond).UTC().Format("2006-01-02T15:04:05.000Z")
	var list []string
	for i := range scores {
		if i == 0 && nth%100 == 0 {
			list = append(list, fmt.Sprintf(`{"scoreName":"node_load_score_%03d","state":"failing","lastSuccess":null,"error":"source: connection refused"}`, i))
		} else {
			list = append(list, fmt.Sprintf(`{"scoreName":"node_load_score_%03d","state":"ok","lastSuccess":"%s"}`, i, now))
		}
	}
	return `{"configurationInForce":true,"scorers":[` + strings.Join(list, ",") + "]}"
}

// report does what the work agents do once all has been applied: conditions and feedback in each work's status.
func report(part, of int) error {
	found, _, _ := works.list(func(*object) bool { return true }, "", 0)
	all, _, _ := scorers.list(func(*object) bool { return true }, "", 0)
	for i, o := range found {
		if i%of != part {
			continue
		}
		configMap, value := feedbackOf(o)
		generation := o.meta["generation"]
		applied := condition("Applied", "True", "AppliedManifestWorkComplete", "Apply manifest work complete")
		available := condition("Available", "True", "ResourcesAvailable", "All resources are available")
		applied["observedGeneration"], available["observedGeneration"] = generation, generation
		manifest := func(ordinal int, name string, values ...any) map[string]any {
			return map[string]any{"resourceMeta": map[string]any{"ordinal": ordinal, "group": "", "version": "v1", "kind": "ConfigMap",
				"resource": "configmaps", "name": name, "namespace": "dynamic-scoring"},
				"conditions":     []any{condition("Applied", "True", "AppliedManifestComplete", ""), condition("Available", "True", "ResourceAvailable", "")},
				"statusFeedback": map[string]any{"values": values}}
		}
		said := map[string]any{"name": value, "fieldValue": map[string]any{"type": "String", "string": agentReport(i, len(all))}}
		if _, err := works.patch(o.key, text(map[string]any{"status": map[string]any{
			"conditions":     []any{applied, available},
			"resourceStatus": map[string]any{"manifests": []any{manifest(0, "dynamic-scoring-config"), manifest(1, configMap, said)}},
		}}), true); err != nil {
			return err
		}
	}
	return nil
}
