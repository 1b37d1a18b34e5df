package role

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// node is a Runner that opens all connections as requested.
type node struct {
	host.Runner
	mu     sync.Mutex
	dialed []string
}

func (n *node) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dialed = append(n.dialed, address)
	n.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, network, address)
}

func ask(t *testing.T, in host.Runner, url string) error {
	t.Helper()
	own := &spec.RoleActions{Node: "portal", Addresses: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}
	return runCheck(t.Context(), in, own, &site.HealthCheck{HTTP: url, Timeout: 20 * time.Second}, nil)
}

// TestNoRedirects: a node that answers with a redirect cannot make the health check connect to the
// host's loopback or anywhere else.
//
// Promise (What others print and answer): A health check reaches only what the node reaches,
// follows no redirect, and looks up no name that the node chose. With role.TestNoNames,
// engine/lxc.TestDialNoNames, transport/rpc.TestDial, test.TestSpeech.
func TestNoRedirects(t *testing.T) {
	var reached atomic.Int32
	hosts := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer hosts.Close()
	_, port, _ := net.SplitHostPort(hosts.Listener.Addr().String())
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{hosts.URL + "/", "http://localhost:" + port + "/", "/other"} {
			nodes := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/other" {
					reached.Add(1)
				}
				w.Header().Set("Location", to)
				w.WriteHeader(status)
			}))
			in := &node{}
			err := ask(t, in, nodes.URL)
			if err == nil || !strings.Contains(err.Error(), fmt.Sprint(status)) ||
				!strings.Contains(err.Error(), "do not follow redirects") {
				t.Errorf("%d to %s: error %v", status, to, err)
			}
			if len(in.dialed) != 1 {
				t.Errorf("%d to %s: dialled were %q", status, to, in.dialed)
			}
			nodes.Close()
		}
	}
	if reached.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

// TestNoNames: no name reaches Dial, which would use the host's resolver.
func TestNoNames(t *testing.T) {
	in := &node{}
	for _, name := range []string{"portal.example", "localhost.localdomain", "db", "0x7f000001"} {
		if err := ask(t, in, "http://"+name+":1/"); err == nil || !strings.Contains(err.Error(),
			"DNS lookups are not supported") {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if len(in.dialed) > 0 {
		t.Errorf("dialled were %q", in.dialed)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Host, "127.") {
			w.WriteHeader(404)
		}
	}))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for _, name := range []string{"localhost", "portal"} {
		if err := ask(t, in, "http://"+name+":"+port+"/"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, address := range in.dialed {
		if _, err := netip.ParseAddrPort(address); err != nil {
			t.Error(err)
		}
	}
}

// TestNoProxy: health checks do not use the host's proxies.
func TestNoProxy(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the proxy was asked")
	}))
	defer proxy.Close()
	t.Setenv("http_proxy", proxy.URL)
	t.Setenv("HTTP_PROXY", proxy.URL)
	in := &node{}
	_ = ask(t, in, "http://192.0.2.1:1/") // in another process the test for loopback addresses would hide it
	for _, address := range in.dialed {
		if address != "192.0.2.1:1" {
			t.Errorf("dialled was %s", address)
		}
	}
}

// TestAnswersAreBounded: a response is shown as text, is short, and does not fill the memory.
func TestAnswersAreBounded(t *testing.T) {
	const evil = "\x1b]0;title\x07\u202e\n2026-01-01 root: all is well"
	for _, raw := range []string{
		"HTTP/1.1 500 " + evil + "\r\n\r\n" + evil,
		"HTTP/1.1 302 x\r\nLocation: " + strings.ReplaceAll(evil, "\n", "") + "\r\n\r\n",
		evil + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\n" + evil + "\r\n\r\n",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
		"HTTP/1.1 500 x\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n1000000\r\n" +
			strings.Repeat("x", 1<<24),
		strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 1<<16),
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		answer := []byte(raw)
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096))
			_, _ = c.Write(answer)
			_ = c.Close()
		}()
		var before, now runtime.MemStats
		runtime.ReadMemStats(&before)
		err = ask(t, &node{}, "http://"+l.Addr().String())
		runtime.ReadMemStats(&now)
		_ = l.Close()
		if err == nil {
			t.Errorf("%.40q counts as healthy", raw)
			continue
		}
		if text := err.Error(); strings.ContainsAny(text, "\x1b\x07\u202e\n") || len(text) > 2000 {
			t.Errorf("%.40q: error %.2000q", raw, text)
		}
		if grown := now.TotalAlloc - before.TotalAlloc; grown > 8<<20 {
			t.Errorf("%.40q takes %d KiB", raw, grown>>10)
		}
	}
}
