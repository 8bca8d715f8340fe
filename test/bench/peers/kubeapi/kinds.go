package main

import (
	"fmt"
	"net/http"
	"strings"
)

const (
	ocmCluster = "cluster.open-cluster-management.io"
	ocmAddon   = "addon.open-cluster-management.io"
	ocmWork    = "work.open-cluster-management.io"
	scoring    = "dynamic-scoring.open-cluster-management.io"
)

var (
	clusters = newKind(ocmCluster, "v1", "managedclusters", "ManagedCluster", false, true)
	addons   = newKind(ocmAddon, "v1alpha1", "managedclusteraddons", "ManagedClusterAddOn", true, true)
	works    = newKind(ocmWork, "v1", "manifestworks", "ManifestWork", true, true)
	scorers  = newKind(scoring, "v1alpha1", "dynamicscorers", "DynamicScorer", true, true)
	configs  = newKind(scoring, "v1alpha1", "dynamicscoringconfigs", "DynamicScoringConfig", true, true)

	kinds = []*kind{clusters, addons, works, scorers, configs,
		newKind("coordination.k8s.io", "v1", "leases", "Lease", true, false),
		newKind("events.k8s.io", "v1", "events", "Event", true, false),
		newKind("", "v1", "events", "Event", true, false),
		newKind("", "v1", "secrets", "Secret", true, false),
		newKind("", "v1", "configmaps", "ConfigMap", true, false),
	}
)

func newKind(group, version, plural, name string, namespaced, status bool) *kind {
	return &kind{group: group, version: version, plural: plural, kind: name, namespaced: namespaced, status: status,
		objects: map[string]*object{}, changed: make(chan struct{})}
}

func kindOf(group, version, plural string) *kind {
	for _, k := range kinds {
		if k.group == group && k.version == version && k.plural == plural {
			return k
		}
	}
	return nil
}

// resourceList is /api/v1 or /apis/GROUP/VERSION; "" when nothing is served there.
func resourceList(group, version string) string {
	var list []string
	for _, k := range kinds {
		if k.group != group || k.version != version {
			continue
		}
		const form = `{"name":%q,"singularName":%q,"namespaced":%t,"kind":%q,"verbs":["create","delete","get","list","patch","update","watch"]}`
		list = append(list, fmt.Sprintf(form, k.plural, strings.ToLower(k.kind), k.namespaced, k.kind))
		if k.status {
			list = append(list, fmt.Sprintf(form, k.plural+"/status", "", k.namespaced, k.kind))
		}
	}
	if list == nil {
		return ""
	}
	return fmt.Sprintf(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":%q,"resources":[%s]}`,
		strings.TrimPrefix(group+"/"+version, "/"), strings.Join(list, ","))
}

func groupList() string {
	var list []string
	seen := map[string]bool{"": true}
	for _, k := range kinds {
		if !seen[k.group] {
			seen[k.group] = true
			version := fmt.Sprintf(`{"groupVersion":%q,"version":%q}`, k.apiVersion(), k.version)
			list = append(list, fmt.Sprintf(`{"name":%q,"versions":[%s],"preferredVersion":%s}`, k.group, version, version))
		}
	}
	return `{"kind":"APIGroupList","apiVersion":"v1","groups":[` + strings.Join(list, ",") + "]}"
}

// discover serves what clients find kinds by.
func discover(w http.ResponseWriter, r *http.Request) {
	body, parts := "", strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/version":
		body = `{"major":"1","minor":"36","gitVersion":"v1.36.0"}`
	case r.URL.Path == "/api":
		body = `{"kind":"APIVersions","versions":["v1"]}`
	case r.URL.Path == "/apis":
		body = groupList()
	case len(parts) == 2 && parts[0] == "api":
		body = resourceList("", parts[1])
	case len(parts) == 3 && parts[0] == "apis":
		body = resourceList(parts[1], parts[2])
	}
	if body == "" {
		sendError(w, r, refusal{http.StatusNotFound, "NotFound", "the server could not find the requested resource"})
		return
	}
	sendText(w, r, http.StatusOK, body)
}
