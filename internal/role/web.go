package role

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/text/sanitize"
)

// get requests a URL from inside the node. It accepts any status from 200 to 299.
//
// The server belongs to the node and may be hostile. Therefore get follows no redirects, which
// could lead to servers that only the host reaches. It resolves no names, uses no proxy of the
// host, and reads no more than fits in a message.
func get(ctx context.Context, in host.Runner, n *spec.RoleActions, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	name := u.Host
	if u.Host, err = resolveHost(u, n); err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return err
	}
	request.Host = name
	client := &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
			DialContext: in.Dial},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(request)
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) {
			err = inner.Err
		}
		return &serverError{err}
	}
	defer answer.Body.Close()
	what := fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	switch answer.StatusCode / 100 {
	case 2:
		return nil
	case 3:
		return fmt.Errorf("%s, to %s: health checks do not follow redirects", what,
			shortLine(answer.Header.Get("Location")))
	}
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswerBytes))
	return fmt.Errorf("%s: %s", what, shortLine(string(text)))
}

// resolveHost returns the host of a URL as an address of the node. The host's resolver cannot be used,
// because it knows other names than the node's and is not in the node's network.
func resolveHost(u *url.URL, n *spec.RoleActions) (string, error) {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443"}[u.Scheme]
	}
	if port == "" {
		port = "80"
	}
	name := u.Hostname()
	if address, err := netip.ParseAddr(name); err == nil {
		return net.JoinHostPort(address.String(), port), nil
	}
	if name == "localhost" || name == n.Node && len(n.Addresses) == 0 {
		return net.JoinHostPort("127.0.0.1", port), nil
	}
	if name == n.Node {
		return net.JoinHostPort(n.Addresses[0].String(), port), nil
	}
	return "", problem.New(problem.Mistake, "%q is not an address, and DNS lookups are not supported", name).
		Try("use localhost, an address or the node's own name in the health check; or use `command`, which runs in the node")
}

// maxAnswerBytes limits the part of a response that is shown.
const maxAnswerBytes = 500

// shortLine returns a response in a form that fits on one line.
func shortLine(text string) string {
	if len(text) > maxAnswerBytes {
		text = text[:maxAnswerBytes] + "…"
	}
	return sanitize.Line(strings.TrimSpace(text))
}

// serverError is an error with text from the server.
type serverError struct{ error }

func (s *serverError) Error() string { return shortLine(s.error.Error()) }
func (s *serverError) Unwrap() error { return s.error }
