// Command kubeapi plays an API server that holds a fleet: ManagedClusters, DynamicScorers whose APIs all are healthy, and whatever a
// controller writes. It has what informers need: pages, watches from a version, bookmarks, selectors, merge patches, the status
// subresource, finalizers, discovery; HTTPS with HTTP/2 and gzip as a real one. Nothing is checked but versions and names.
//
// It prints one line, the port of /admin/* and /healthz (plain HTTP), once it serves, and ends with its standard input.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unique"
)

// counts is what /admin/stats tells.
var counts struct {
	mu       sync.Mutex
	requests map[string]int
	in, out  atomic.Int64 // bytes of bodies
	works    atomic.Int64 // changes of ManifestWorks
	lastWork atomic.Int64 // Unix time of the last one, ns
}

func countRequest(what string) {
	counts.mu.Lock()
	defer counts.mu.Unlock()
	counts.requests[what]++
}

func countWork() {
	counts.works.Add(1)
	counts.lastWork.Store(time.Now().UnixNano())
}

func stats() string {
	works.mu.Lock()
	texts := map[unique.Handle[string]]int{}
	for _, o := range works.objects {
		for i, name := range o.names {
			if name == `"spec"` {
				texts[o.values[i]]++
			}
		}
	}
	n := len(works.objects)
	works.mu.Unlock()
	size := 0
	for t := range texts {
		size = max(size, len(t.Value()))
	}
	counts.mu.Lock()
	defer counts.mu.Unlock()
	return text(map[string]any{"requests": counts.requests, "bytes_in": counts.in.Load(), "bytes_out": counts.out.Load(),
		"work_writes": counts.works.Load(), "last_work_write": float64(counts.lastWork.Load()) / 1e9,
		"works": n, "texts": len(texts), "largest": size})
}

// admin is what the bench steers by. Each change answers with the time at which it was made.
func admin(w http.ResponseWriter, r *http.Request) {
	var err error
	q, now := r.URL.Query(), float64(time.Now().UnixNano())/1e9
	switch r.URL.Path {
	case "/healthz":
		fmt.Fprint(w, "ok")
		return
	case "/admin/stats":
		fmt.Fprint(w, stats())
		return
	case "/admin/change-scorer":
		seconds, _ := strconv.Atoi(q.Get("range"))
		err = changeScorer(q.Get("name"), seconds)
	case "/admin/mask":
		err = mask(q.Get("cluster"), q.Get("score"))
	case "/admin/report": // of every cluster, or of each whose number leaves the rest `part` when divided by `of`
		part, _ := strconv.Atoi(q.Get("part"))
		of, _ := strconv.Atoi(q.Get("of"))
		err = report(part, max(of, 1))
	default:
		http.NotFound(w, r)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, "%.9f", now)
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// certificate makes one for 127.0.0.1 that vouches for itself.
func certificate() (tls.Certificate, []byte) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		log.Fatal(err)
	}
	about := x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubeapi"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	der, err := x509.CreateCertificate(rand.Reader, &about, &about, key.Public(), key)
	if err != nil {
		log.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pemOf("CERTIFICATE", der)
}

func kubeconfig(port int, ca []byte) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: bench, cluster: {server: "https://127.0.0.1:%d", certificate-authority-data: %s}}]
users: [{name: bench, user: {token: bench}}]
contexts: [{name: bench, context: {cluster: bench, user: bench}}]
current-context: bench
`, port, base64.StdEncoding.EncodeToString(ca))
}

func listen() (net.Listener, int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	return l, l.Addr().(*net.TCPAddr).Port
}

func main() {
	nClusters := flag.Int("clusters", 1000, "ManagedClusters")
	nScorers := flag.Int("scorers", 100, "DynamicScorers")
	file := flag.String("kubeconfig", "kubeconfig", "file to be written")
	flag.Parse()
	counts.requests = map[string]int{}
	steering, adminPort := listen()
	api, port := listen()
	cert, ca := certificate()
	populate(*nClusters, *nScorers, fmt.Sprintf("http://127.0.0.1:%d/config", adminPort))
	if err := os.WriteFile(*file, []byte(kubeconfig(port, ca)), 0o600); err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(http.Serve(steering, http.HandlerFunc(admin))) }()
	server := http.Server{Handler: http.HandlerFunc(serve), TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}},
		ErrorLog: log.New(io.Discard, "", 0)}
	go func() { log.Fatal(server.ServeTLS(api, "", "")) }()
	fmt.Println(adminPort)
	_, _ = io.Copy(io.Discard, os.Stdin)
}
