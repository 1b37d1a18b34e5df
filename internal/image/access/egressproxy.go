package access

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

// An upstream returns the host's proxy for a URL, or nil if there is none.
type upstream func(*url.URL) (*url.URL, error)

// An egressProxy is the only way out of a build's network namespace. It is an HTTP proxy that listens
// on the namespace's loopback and dials from the host. It connects only to places from a given list.
type egressProxy struct {
	places  map[string]bool // HOST:PORT
	mutex   sync.Mutex
	refused []string
	servers []*http.Server
}

// maxConnections is the maximum number of connections at each address of a relay. Processes in the
// namespace must not use up the file descriptors of this process.
const maxConnections = 128

// dialTimeout is how long a place may take to accept a connection.
const dialTimeout = 30 * time.Second

// newEgressProxy returns a relay to places, given as HOST:PORT. It does not listen yet.
func newEgressProxy(places []string) *egressProxy {
	r := &egressProxy{places: map[string]bool{}}
	for _, p := range places {
		r.places[strings.ToLower(p)] = true
	}
	return r
}

// hostPort returns the HOST:PORT of an http or https URL, or "" if the URL has none.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if port == "" || u.Hostname() == "" {
		return ""
	}
	return strings.ToLower(net.JoinHostPort(strings.TrimSuffix(u.Hostname(), "."), port))
}

// Listen makes the relay available as a proxy at an address in a network namespace.
func (r *egressProxy) Listen(space *os.File, address string, up upstream) error {
	var l net.Listener
	if err := host.InNetNS(space, func() (err error) {
		l, err = net.Listen("tcp", address)
		return err
	}); err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	r.serve(l, up)
	return nil
}

// serve serves the relay on a listener.
func (r *egressProxy) serve(l net.Listener, up upstream) {
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
			} else if r.allow(w, hostPort(q.URL)) {
				plain.ServeHTTP(w, q)
			}
		}),
	}
	r.mutex.Lock()
	r.servers = append(r.servers, server)
	r.mutex.Unlock()
	go server.Serve(netutil.LimitListener(l, maxConnections)) //nolint:errcheck // it ends by Close
}

// Close stops the relay and all connections through it.
func (r *egressProxy) Close() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, s := range r.servers {
		_ = s.Close()
	}
}

// Denied returns the places that a client tried to reach and that are not allowed.
func (r *egressProxy) Denied() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return append([]string(nil), r.refused...)
}

// maxDenied is the maximum number of refused places that are remembered.
const maxDenied = 8

// allow reports whether a place is allowed. If it is not, it answers with an error.
func (r *egressProxy) allow(w http.ResponseWriter, place string) bool {
	if r.places[place] {
		return true
	}
	r.mutex.Lock()
	if len(place) < 300 && len(r.refused) < maxDenied && place != "" {
		r.refused = append(r.refused, place)
	}
	r.mutex.Unlock()
	http.Error(w, "orrery: builds cannot reach this host; [mirror] hosts in site.toml allows more hosts",
		http.StatusForbidden)
	return false
}

// connect connects a client to a place (RFC 9110, CONNECT).
func (r *egressProxy) connect(w http.ResponseWriter, q *http.Request, up upstream) {
	place := hostPort(&url.URL{Scheme: "https", Host: q.Host})
	if !r.allow(w, place) {
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

// splice copies bytes in both directions until both sides have ended.
func splice(here net.Conn, early io.Reader, remote net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(remote, early)
		closeWriteSide(remote)
	}()
	_, _ = io.Copy(here, remote)
	closeWriteSide(here)
	select {
	case <-done:
	case <-time.After(time.Minute): // a peer that has received everything may be slow to close
	}
}

// closeWriteSide closes the sending direction of a connection.
func closeWriteSide(c net.Conn) {
	if t, ok := c.(interface{ CloseWrite() error }); ok {
		_ = t.CloseWrite()
	}
}

var errUpstreamRefused = errors.New("the host's proxy refused the connection")
