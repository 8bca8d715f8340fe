package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	gzipFrom      = 128 << 10 // as the API server: smaller answers go as they are
	bookmarkEvery = time.Minute
)

// request is one as REST sees it.
type request struct {
	kind           *kind
	ns, name, sub  string
	partial        bool // PartialObjectMetadata is asked for
	wants          func(*object) bool
	verb, resource string // for the counts
}

// selects reads fieldSelector (metadata.name alone, or metadata.namespace!=NAME) and labelSelector (key, key=value).
func selects(r *http.Request, ns string) func(*object) bool {
	q := r.URL.Query()
	name, byName := strings.CutPrefix(strings.Replace(q.Get("fieldSelector"), "==", "=", 1), "metadata.name=")
	notIn, elsewhere := strings.CutPrefix(q.Get("fieldSelector"), "metadata.namespace!=")
	var labels []string
	if q.Get("labelSelector") != "" {
		labels = strings.Split(strings.ReplaceAll(q.Get("labelSelector"), "==", "="), ",")
	}
	return func(o *object) bool {
		if (ns != "" && !strings.HasPrefix(o.key, ns+"/")) || (byName && o.name() != name) ||
			(elsewhere && strings.HasPrefix(o.key, notIn+"/")) {
			return false
		}
		for _, l := range labels {
			key, want, byValue := strings.Cut(l, "=")
			if value, ok := o.label(key); !ok || (byValue && value != want) {
				return false
			}
		}
		return true
	}
}

// route reads /api/v1/... and /apis/GROUP/VERSION/...; a request without a kind is for something else.
func route(r *http.Request) request {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	rq := request{partial: strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata")}
	if len(parts) > 0 && parts[0] == "api" {
		parts = append([]string{"apis", ""}, parts[1:]...)
	}
	if len(parts) < 4 {
		return rq
	}
	group, version, parts := parts[1], parts[2], parts[3:]
	if parts[0] == "namespaces" && len(parts) > 2 {
		rq.ns, parts = parts[1], parts[2:]
	}
	rq.kind = kindOf(group, version, parts[0])
	if len(parts) > 1 {
		rq.name = parts[1]
	}
	if len(parts) > 2 {
		rq.sub = parts[2]
	}
	rq.resource = strings.TrimSuffix(parts[0]+"/"+rq.sub, "/")
	rq.wants = selects(r, rq.ns)
	return rq
}

var zippers = sync.Pool{New: func() any { z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed); return z }}

// answer sends a body that `write` makes; large ones compressed.
func answer(w http.ResponseWriter, r *http.Request, status int, write func(io.StringWriter)) {
	var head strings.Builder
	out := &sender{w: w, head: &head, zip: strings.Contains(r.Header.Get("Accept-Encoding"), "gzip"), status: status}
	write(out)
	out.close()
}

// sender keeps what comes until it is known whether it is worth compressing.
type sender struct {
	w      http.ResponseWriter
	head   *strings.Builder
	zip    bool
	status int
	rest   *bufio.Writer // after the head
	zipper *gzip.Writer
}

func (s *sender) WriteString(t string) (int, error) {
	if s.rest == nil && s.head.Len()+len(t) < gzipFrom {
		return s.head.WriteString(t)
	}
	if s.rest == nil {
		s.begin(s.zip)
	}
	return s.rest.WriteString(t)
}

func (s *sender) begin(zip bool) {
	s.w.Header().Set("Content-Type", "application/json")
	var to io.Writer = &counter{s.w}
	if zip {
		s.w.Header().Set("Content-Encoding", "gzip")
		s.zipper = zippers.Get().(*gzip.Writer)
		s.zipper.Reset(to)
		to = s.zipper
	} else if s.rest == nil && s.head.Len() < gzipFrom {
		s.w.Header().Set("Content-Length", strconv.Itoa(s.head.Len()))
	}
	s.w.WriteHeader(s.status)
	s.rest = bufio.NewWriterSize(to, 64<<10)
	s.rest.WriteString(s.head.String())
}

func (s *sender) close() {
	if s.rest == nil {
		s.begin(false)
	}
	s.rest.Flush()
	if s.zipper != nil {
		s.zipper.Close()
		zippers.Put(s.zipper)
	}
}

type counter struct{ w io.Writer }

func (c *counter) Write(p []byte) (int, error) {
	counts.out.Add(int64(len(p)))
	return c.w.Write(p)
}

func sendText(w http.ResponseWriter, r *http.Request, status int, body string) {
	answer(w, r, status, func(out io.StringWriter) { out.WriteString(body) })
}

func sendError(w http.ResponseWriter, r *http.Request, err error) {
	no := refusal{http.StatusInternalServerError, "InternalError", err.Error()}
	errors.As(err, &no)
	sendText(w, r, no.code, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"reason":%q,"code":%d}`,
		no.message, no.reason, no.code))
}

func (rq *request) list(w http.ResponseWriter, r *http.Request) {
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	found, more, version := rq.kind.list(rq.wants, r.URL.Query().Get("continue"), limit)
	next := ""
	if more {
		next = fmt.Sprintf(`,"continue":%q`, found[len(found)-1].key)
	}
	name, apiVersion := rq.kind.kind, rq.kind.apiVersion()
	if rq.partial {
		name, apiVersion = "PartialObjectMetadata", "meta.k8s.io/v1"
	}
	answer(w, r, http.StatusOK, func(out io.StringWriter) {
		out.WriteString(fmt.Sprintf(`{"apiVersion":%q,"kind":"%sList","metadata":{"resourceVersion":"%d"%s},"items":[`, apiVersion, name, version, next))
		for i, o := range found {
			if i > 0 {
				out.WriteString(",")
			}
			o.write(out, rq.partial)
		}
		out.WriteString("]}\n")
	})
}

// as is what an event means to a watch that does not want all objects.
func (rq *request) as(e event) (string, *object) {
	from, to := e.from != nil && rq.wants(e.from), e.to != nil && rq.wants(e.to)
	switch {
	case from && to:
		return "MODIFIED", e.to
	case to:
		return "ADDED", e.to
	case from:
		return "DELETED", e.from
	}
	return "", nil
}

func (rq *request) watch(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	version, _ := strconv.ParseUint(q.Get("resourceVersion"), 10, 64)
	seconds, _ := strconv.Atoi(q.Get("timeoutSeconds"))
	if seconds == 0 {
		seconds = 1800
	}
	end, bookmark := time.After(time.Duration(seconds)*time.Second), time.NewTicker(bookmarkEvery)
	defer bookmark.Stop()
	w.Header().Set("Content-Type", "application/json")
	out := bufio.NewWriterSize(&counter{w}, 64<<10)
	send := func(what string, o *object) {
		out.WriteString(`{"type":"` + what + `","object":`)
		o.write(out, rq.partial)
		out.WriteString("}\n")
	}
	mark := func(annotations string) {
		fmt.Fprintf(out, `{"type":"BOOKMARK","object":{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"%d"%s}}}`+"\n",
			rq.kind.apiVersion(), rq.kind.kind, version, annotations)
	}
	if q.Get("sendInitialEvents") == "true" {
		var found []*object
		found, _, version = rq.kind.list(rq.wants, "", 0)
		for _, o := range found {
			send("ADDED", o)
		}
		mark(`,"annotations":{"k8s.io/initial-events-end":"true"}`)
	}
	for {
		events, more := rq.kind.since(version)
		for _, e := range events {
			if what, o := rq.as(e); o != nil {
				send(what, o)
			}
			version = e.version
		}
		out.Flush()
		w.(http.Flusher).Flush()
		select {
		case <-more:
		case <-bookmark.C:
			mark("")
		case <-end:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (rq *request) write(r *http.Request) (o *object, err error) {
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	counts.in.Add(int64(len(b)))
	key, body, status := rq.ns+"/"+rq.name, string(b), rq.sub == "status"
	switch r.Method {
	case http.MethodPost:
		return rq.kind.create(rq.ns, body)
	case http.MethodPut:
		return rq.kind.update(key, body, status)
	case http.MethodDelete:
		return rq.kind.delete(key)
	}
	if !strings.Contains(r.Header.Get("Content-Type"), "merge-patch") {
		return nil, refusal{http.StatusUnsupportedMediaType, "UnsupportedMediaType", "expected a JSON merge patch"}
	}
	return rq.kind.patch(key, body, status)
}

var verbs = map[string]string{"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}

func serve(w http.ResponseWriter, r *http.Request) {
	rq := route(r)
	if rq.kind == nil {
		discover(w, r)
		return
	}
	rq.verb = verbs[r.Method]
	if rq.verb == "get" && rq.name == "" {
		rq.verb = "list"
		if q := r.URL.Query(); q.Get("watch") == "true" || q.Get("watch") == "1" {
			rq.verb = "watch"
		}
	}
	countRequest(rq.verb + " " + rq.resource)
	var o *object
	var err error
	switch rq.verb {
	case "list":
		rq.list(w, r)
		return
	case "watch":
		rq.watch(w, r)
		return
	case "get":
		o, err = rq.kind.get(rq.ns + "/" + rq.name)
	default:
		o, err = rq.write(r)
	}
	if err != nil {
		sendError(w, r, err)
		return
	}
	status := http.StatusOK
	if rq.verb == "create" {
		status = http.StatusCreated
	}
	answer(w, r, status, func(out io.StringWriter) { o.write(out, rq.partial) })
}
