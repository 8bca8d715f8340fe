package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unique"
)

// object is one version of an object; it never changes. Equal members of many objects are kept once.
type object struct {
	key     string // namespace/name
	version uint64
	meta    map[string]any
	head    string // apiVersion, kind and metadata as JSON text, without the braces
	names   []string
	values  []unique.Handle[string]
}

// write appends the object as JSON; of a partial one only the metadata.
func (o *object) write(w io.StringWriter, partial bool) {
	if partial {
		_, head, _ := strings.Cut(o.head, `,"metadata":`)
		w.WriteString(`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":` + head + "}")
		return
	}
	w.WriteString("{" + o.head)
	for i, name := range o.names {
		w.WriteString("," + name + ":")
		w.WriteString(o.values[i].Value())
	}
	w.WriteString("}")
}

func (o *object) member(name string) string {
	if i := slices.Index(o.names, name); i >= 0 {
		return o.values[i].Value()
	}
	return ""
}

func (o *object) same(p *object) bool {
	return slices.Equal(o.names, p.names) && slices.Equal(o.values, p.values)
}

func (o *object) name() string { return o.key[strings.IndexByte(o.key, '/')+1:] }

func (o *object) label(key string) (string, bool) {
	labels, _ := o.meta["labels"].(map[string]any)
	value, ok := labels[key].(string)
	return value, ok
}

// event is a change: from nothing, or to nothing.
type event struct {
	version  uint64
	from, to *object
}

// kind is a resource and all of its objects.
type kind struct {
	group, version, plural, kind string
	namespaced, status           bool // status: has the subresource

	mu      sync.Mutex
	objects map[string]*object
	sorted  []string // keys in order; nil: to be made again
	log     []event
	changed chan struct{} // closed and made anew at each event
}

var versions atomic.Uint64

func (k *kind) apiVersion() string { return strings.TrimPrefix(k.group+"/"+k.version, "/") }

// refusal is an answer that is a Status object.
type refusal struct {
	code            int
	reason, message string
}

func (r refusal) Error() string { return r.message }

func (k *kind) notFound(key string) error {
	return refusal{http.StatusNotFound, "NotFound", fmt.Sprintf("%s.%s %q not found", k.plural, k.group, key)}
}

// make builds the next version of was (nil: a new object).
func (k *kind) make(key string, was *object, meta map[string]any, rest []member) *object {
	o := &object{key: key, meta: meta}
	for _, m := range rest {
		if m.name == `"apiVersion"` || m.name == `"kind"` || m.name == `"metadata"` {
			continue
		}
		o.names = append(o.names, m.name)
		o.values = append(o.values, unique.Make(m.value))
	}
	generation := 1.0
	if was != nil {
		generation = was.meta["generation"].(float64)
		if was.member(`"spec"`) != o.member(`"spec"`) {
			generation++
		}
	} else {
		meta["uid"] = fmt.Sprintf("00000000-0000-4000-8000-%012x", versions.Add(1))
		meta["creationTimestamp"] = time.Now().UTC().Format(time.RFC3339)
	}
	meta["generation"] = generation
	return o
}

// put stores a version and tells the watches. k.mu is held.
func (k *kind) put(was, o *object) *object {
	o.version = versions.Add(1)
	o.meta["resourceVersion"] = fmt.Sprint(o.version)
	o.head = fmt.Sprintf(`"apiVersion":%q,"kind":%q,"metadata":%s`, k.apiVersion(), k.kind, text(o.meta))
	if was == nil {
		k.sorted = nil
	}
	k.objects[o.key] = o
	k.tell(event{o.version, was, o})
	return o
}

func (k *kind) tell(e event) {
	k.log = append(k.log, e)
	close(k.changed)
	k.changed = make(chan struct{})
	if k.plural == "manifestworks" {
		countWork()
	}
}

func metaOf(body []member) map[string]any {
	meta := map[string]any{}
	if i := find(body, `"metadata"`); i >= 0 {
		_ = json.Unmarshal([]byte(body[i].value), &meta)
	}
	return meta
}

func (k *kind) create(ns string, body string) (*object, error) {
	list := members(body)
	meta := metaOf(list)
	name, _ := meta["name"].(string)
	if prefix, _ := meta["generateName"].(string); name == "" && prefix != "" {
		name = fmt.Sprintf("%s%x", prefix, versions.Add(1))
	}
	if name == "" {
		return nil, refusal{http.StatusUnprocessableEntity, "Invalid", "metadata.name: Required value"}
	}
	meta["name"] = name
	if k.namespaced {
		meta["namespace"] = ns
	}
	if i := find(list, `"status"`); i >= 0 && k.status {
		list = slices.Delete(list, i, i+1)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	key := ns + "/" + name
	if k.objects[key] != nil {
		return nil, refusal{http.StatusConflict, "AlreadyExists", fmt.Sprintf("%s %q already exists", k.plural, name)}
	}
	return k.put(nil, k.make(key, nil, meta, list)), nil
}

// others is what a request to the object, or to its status, may not change.
func (k *kind) others(was *object, rest []member, status bool) []member {
	if !k.status {
		return rest
	}
	var kept []member
	for _, m := range rest {
		if (m.name == `"status"`) == status {
			kept = append(kept, m)
		}
	}
	for i, name := range was.names {
		if (name == `"status"`) != status {
			kept = append(kept, member{name, was.values[i].Value()})
		}
	}
	slices.SortStableFunc(kept, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return kept
}

func (o *object) rest() (list []member) {
	for i, name := range o.names {
		list = append(list, member{name, o.values[i].Value()})
	}
	return list
}

var served = []string{"uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp", "name", "namespace"}

// change replaces the object by what `with` makes of it: metadata and the other members.
func (k *kind) change(key string, status bool, with func(*object) (map[string]any, []member)) (*object, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.objects[key]
	if was == nil {
		return nil, k.notFound(key)
	}
	meta, rest := with(was)
	if v, _ := meta["resourceVersion"].(string); v != "" && v != was.meta["resourceVersion"] {
		return nil, refusal{http.StatusConflict, "Conflict", "the object has been modified"}
	}
	for _, name := range served {
		delete(meta, name)
		if value, ok := was.meta[name]; ok {
			meta[name] = value
		}
	}
	o := k.make(key, was, meta, k.others(was, rest, status))
	if finalizers, _ := meta["finalizers"].([]any); meta["deletionTimestamp"] != nil && len(finalizers) == 0 {
		return k.drop(was), nil
	}
	if o.same(was) && text(o.meta) == text(was.meta) {
		return was, nil // as the API server does: nothing is written
	}
	return k.put(was, o), nil
}

func copyMap(m map[string]any) map[string]any {
	c := map[string]any{}
	for key, value := range m {
		c[key] = value
	}
	return c
}

func (k *kind) patch(key, body string, status bool) (*object, error) {
	patch := members(body)
	return k.change(key, status, func(was *object) (map[string]any, []member) {
		meta := copyMap(was.meta)
		if i := find(patch, `"metadata"`); i >= 0 && !status {
			merged := merge(text(was.meta), patch[i].value)
			meta = metaOf([]member{{`"metadata"`, merged}})
		}
		return meta, mergeMembers(was.rest(), patch)
	})
}

func (k *kind) update(key, body string, status bool) (*object, error) {
	list := members(body)
	return k.change(key, status, func(*object) (map[string]any, []member) { return metaOf(list), list })
}

func (k *kind) drop(was *object) *object {
	delete(k.objects, was.key)
	k.sorted = nil
	k.tell(event{versions.Add(1), was, nil})
	return was
}

func (k *kind) delete(key string) (*object, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.objects[key]
	if was == nil {
		return nil, k.notFound(key)
	}
	finalizers, _ := was.meta["finalizers"].([]any)
	if len(finalizers) == 0 {
		return k.drop(was), nil
	}
	if was.meta["deletionTimestamp"] != nil {
		return was, nil
	}
	o := k.make(key, was, copyMap(was.meta), was.rest())
	o.meta["deletionTimestamp"] = time.Now().UTC().Format(time.RFC3339)
	return k.put(was, o), nil
}

func (k *kind) get(key string) (*object, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if o := k.objects[key]; o != nil {
		return o, nil
	}
	return nil, k.notFound(key)
}

// list gives up to limit objects (0: all) after the key, those there are more of, and the version of it all.
func (k *kind) list(ok func(*object) bool, after string, limit int) (found []*object, more bool, version uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sorted == nil {
		for key := range k.objects {
			k.sorted = append(k.sorted, key)
		}
		sort.Strings(k.sorted)
	}
	for _, key := range k.sorted[sort.SearchStrings(k.sorted, after+"\x00"):] {
		if o := k.objects[key]; ok(o) {
			if limit > 0 && len(found) == limit {
				return found, true, versions.Load()
			}
			found = append(found, o)
		}
	}
	return found, false, versions.Load()
}

// since gives the events after a version, and what is closed when there are more.
func (k *kind) since(version uint64) ([]event, chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := sort.Search(len(k.log), func(i int) bool { return k.log[i].version > version })
	return k.log[i:], k.changed
}
