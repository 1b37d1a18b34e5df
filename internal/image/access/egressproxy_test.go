package access

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
)

func direct(*url.URL) (*url.URL, error) { return nil, nil }

// at starts a relay on this machine's loopback and returns a client for it.
func at(t *testing.T, up upstream, places ...string) (*egressProxy, *http.Client, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := newEgressProxy(places)
	r.serve(l, up)
	t.Cleanup(r.Close)
	by := &url.URL{Scheme: "http", Host: l.Addr().String()}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(by),
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(client.CloseIdleConnections)
	return r, client, by.Host
}

func get(c *http.Client, uri string) string {
	answer, err := c.Get(uri)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return answer.Status + " " + string(text)
}

func place(t *testing.T, s *httptest.Server) string {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return hostPort(u)
}

func TestOnlyPlaces(t *testing.T) {
	hello := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.WriteString(w, "packages of "+q.URL.Path)
	})
	mirror, secure, other := httptest.NewServer(hello), httptest.NewTLSServer(hello), httptest.NewServer(hello)
	otherSecure := httptest.NewTLSServer(hello)
	for _, s := range []*httptest.Server{mirror, secure, other, otherSecure} {
		defer s.Close()
	}
	r, client, relayed := at(t, direct, place(t, mirror), place(t, secure))
	for uri, want := range map[string]string{
		mirror.URL + "/a":                  "200 OK packages of /a",
		secure.URL + "/b":                  "200 OK packages of /b",
		other.URL:                          "403 Forbidden",
		otherSecure.URL:                    "Forbidden",
		"http://localhost:22/":             "403 Forbidden",
		"http://127.1:22/":                 "403 Forbidden",
		"http://[::1]:80/":                 "403 Forbidden",
		"http://" + relayed:                "403 Forbidden",
		"https://169.254.169.254/latest":   "Forbidden",
		"http://169.254.169.254/latest":    "403 Forbidden",
		"http://user@" + place(t, other):   "403 Forbidden",
		mirror.URL[:len(mirror.URL)-1]:     "403 Forbidden", // another port
		"https://" + place(t, other) + "/": "Forbidden",
	} {
		if got := get(client, uri); !strings.Contains(got, want) {
			t.Errorf("%s gives %q instead of %q", uri, got, want)
		}
	}
	if len(r.Denied()) == 0 || len(r.Denied()) > maxDenied {
		t.Errorf("refused are %q", r.Denied())
	}
	// A request that is not a proxy request is refused.
	if got := get(http.DefaultClient, "http://"+relayed+"/etc"); !strings.Contains(got, "403") {
		t.Errorf("asked directly it answers %q", got)
	}
	// Headers cannot lead to another place.
	c, err := net.Dial("tcp", relayed)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "CONNECT "+place(t, other)+" HTTP/1.1\r\nHost: "+place(t, secure)+"\r\n\r\n")
	b := make([]byte, 12)
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "HTTP/1.1 403" {
		t.Errorf("a false Host gives %q, %v", b, err)
	}
}

// TestUpstream reaches places through another relay, which stands for the proxy of the host.
func TestUpstream(t *testing.T) {
	var asked atomic.Int32
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	mirror, secure := httptest.NewServer(hello), httptest.NewTLSServer(hello)
	defer mirror.Close()
	defer secure.Close()
	_, _, upper := at(t, func(*url.URL) (*url.URL, error) { asked.Add(1); return nil, nil }, place(t, mirror),
		place(t, secure))
	_, client, _ := at(t, func(*url.URL) (*url.URL, error) { return url.Parse("http://" + upper) }, place(t, mirror),
		place(t, secure))
	for i, uri := range []string{mirror.URL, secure.URL} {
		if got := get(client, uri); got != "200 OK hello" {
			t.Errorf("%s gives %q", uri, got)
		}
		if int(asked.Load()) != i+1 {
			t.Errorf("the upper proxy was asked %d times", asked.Load())
		}
	}
	_, client, _ = at(t, func(*url.URL) (*url.URL, error) { return url.Parse("http://" + upper) }, "127.0.0.1:1")
	if got := get(client, "https://127.0.0.1:1/"); !strings.Contains(got, "Bad Gateway") {
		t.Errorf("what the upper proxy refuses gives %q", got)
	}
}

func TestPlace(t *testing.T) {
	for uri, want := range map[string]string{
		"http://Deb.Debian.org/debian": "deb.debian.org:80", "https://pypi.org./simple": "pypi.org:443",
		"http://[::1]:3141/x": "[::1]:3141", "file:///srv": "", "/x": "",
	} {
		u, err := url.Parse(uri)
		if err != nil || hostPort(u) != want {
			t.Errorf("%s is at %q, %v", uri, hostPort(u), err)
		}
	}
}
