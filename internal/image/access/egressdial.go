package access

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/proxy"
)

// dial connects to a place, through the host's proxy for it if there is one.
func dial(ctx context.Context, place string, up upstream) (net.Conn, error) {
	by, err := up(&url.URL{Scheme: "https", Host: place})
	if err != nil {
		return nil, err
	}
	direct := &net.Dialer{Timeout: dialTimeout}
	if by == nil {
		return direct.DialContext(ctx, "tcp", place)
	}
	switch by.Scheme {
	case "socks5", "socks5h":
		d, err := proxy.FromURL(by, direct)
		if err != nil {
			return nil, err
		}
		return d.(proxy.ContextDialer).DialContext(ctx, "tcp", place)
	case "http", "https":
	default:
		return nil, fmt.Errorf("%w: unsupported proxy type %s", errUpstreamRefused, by.Scheme)
	}
	c, err := direct.DialContext(ctx, "tcp", hostPort(by))
	if err != nil {
		return nil, err
	}
	if by.Scheme == "https" {
		c = tls.Client(c, &tls.Config{ServerName: by.Hostname(), MinVersion: tls.VersionTLS12})
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = c.SetDeadline(deadline)
	}
	joined, err := requestConnect(c, place, by.User)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return joined, c.SetDeadline(time.Time{})
}

// requestConnect requests a connection to a place from a proxy.
func requestConnect(c net.Conn, place string, who *url.Userinfo) (net.Conn, error) {
	q := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: place}, Host: place, Header: http.Header{}}
	if who != nil {
		password, _ := who.Password()
		q.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(who.Username()+":"+password)))
	}
	if err := q.Write(c); err != nil {
		return nil, err
	}
	from := bufio.NewReader(c)
	answer, err := http.ReadResponse(from, q)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: %s", errUpstreamRefused, answer.Status)
	}
	return &bufferedConn{Conn: c, from: from}, nil
}

// bufferedConn is a connection whose first bytes have already been read.
type bufferedConn struct {
	net.Conn
	from io.Reader
}

func (e *bufferedConn) Read(b []byte) (int, error) { return e.from.Read(b) }
