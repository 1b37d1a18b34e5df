// Package egressproxy is the only way out of a build's network namespace: an HTTP proxy that listens on
// the namespace's loopback and dials from the host, only to the places that it was given.
package egressproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"orrery/internal/host"
)

// An Upstream says through which proxy of the host a place is reached; nil: through none.
type Upstream func(*url.URL) (*url.URL, error)

// A Relay lets what is in one network namespace reach some places.
type Relay struct {
	places  map[string]bool // HOST:PORT
	mutex   sync.Mutex
	refused []string
	servers []*http.Server
}

// maxConnections is how many connections a relay has at a time at each of its addresses: what is in
// the namespace must not use up the files of this process.
const maxConnections = 128

// dialTimeout is how long a place has to take a connection.
const dialTimeout = 30 * time.Second

// New returns a relay to places, HOST:PORT, which listens nowhere yet.
func New(places []string) *Relay {
	r := &Relay{places: map[string]bool{}}
	for _, p := range places {
		r.places[strings.ToLower(p)] = true
	}
	return r
}

// Place returns the place, HOST:PORT, that a URL of http or https names; "" for what leads nowhere.
func Place(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if port == "" || u.Hostname() == "" {
		return ""
	}
	return strings.ToLower(net.JoinHostPort(strings.TrimSuffix(u.Hostname(), "."), port))
}

// Listen lets those in a network namespace use the relay as the proxy at an address of theirs.
func (r *Relay) Listen(space *os.File, address string, up Upstream) error {
	var l net.Listener
	if err := host.InNetwork(space, func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	}); err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	r.serve(l, up)
	return nil
}

// serve is the relay at a listener.
func (r *Relay) serve(l net.Listener, up Upstream) {
	transport := &http.Transport{
		Proxy: func(q *http.Request) (*url.URL, error) { return up(q.URL) },
		DialContext: (&net.Dialer{Timeout: dialTimeout}).
			DialContext, DisableCompression: true, MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute,
		TLSHandshakeTimeout: dialTimeout, ResponseHeaderTimeout: 2 * time.Minute,
	}
	plain := &httputil.ReverseProxy{
		Rewrite: func(*httputil.ProxyRequest) {}, Transport: transport, FlushInterval: -1,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, "orrery: "+err.Error(), http.StatusBadGateway)
		},
	}
	server := &http.Server{
		ReadHeaderTimeout: dialTimeout, IdleTimeout: 5 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			if q.Method == http.MethodConnect {
				r.connect(w, q, up)
			} else if r.passes(w, Place(q.URL)) {
				plain.ServeHTTP(w, q)
			}
		}),
	}
	r.mutex.Lock()
	r.servers = append(r.servers, server)
	r.mutex.Unlock()
	go server.Serve(netutil.LimitListener(l, maxConnections)) //nolint:errcheck // it ends by Close
}

// Close ends the relay, with all that passes through it.
func (r *Relay) Close() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, s := range r.servers {
		_ = s.Close()
	}
}

// Refused returns the places that somebody wanted to reach and must not.
func (r *Relay) Refused() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return append([]string(nil), r.refused...)
}

// maxRefused is how many places are remembered that must not be reached.
const maxRefused = 8

// passes reports whether a place may be reached; if not, it says so.
func (r *Relay) passes(w http.ResponseWriter, place string) bool {
	if r.places[place] {
		return true
	}
	r.mutex.Lock()
	if len(place) < 300 && len(r.refused) < maxRefused && place != "" {
		r.refused = append(r.refused, place)
	}
	r.mutex.Unlock()
	http.Error(w, "orrery: this place cannot be reached from here; [mirror] hosts in site.toml opens more",
		http.StatusForbidden)
	return false
}

// connect joins a client to a place (RFC 9110, CONNECT).
func (r *Relay) connect(w http.ResponseWriter, q *http.Request, up Upstream) {
	place := Place(&url.URL{Scheme: "https", Host: q.Host})
	if !r.passes(w, place) {
		return
	}
	ctx, cancel := context.WithTimeout(q.Context(), dialTimeout)
	defer cancel()
	remote, err := dial(ctx, place, up)
	if err != nil {
		http.Error(w, "orrery: "+err.Error(), http.StatusBadGateway)
		return
	}
	defer remote.Close() //nolint:errcheck // nothing of it is kept
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, "orrery: HTTP/1.1 is needed", http.StatusHTTPVersionNotSupported)
		return
	}
	here, early, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer here.Close() //nolint:errcheck // likewise
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	splice(here, early, remote)
}

// splice carries what either side says to the other until one has ended.
func splice(here net.Conn, early io.Reader, remote net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(remote, early)
		half(remote)
	}()
	_, _ = io.Copy(here, remote)
	half(here)
	select {
	case <-done:
	case <-time.After(time.Minute): // who has heard all may be slow to go
	}
}

// half ends what is said to one side.
func half(c net.Conn) {
	if t, ok := c.(interface{ CloseWrite() error }); ok {
		_ = t.CloseWrite()
	}
}

var errProxy = errors.New("the proxy of the host refused")
