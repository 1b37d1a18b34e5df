package nodes

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"orrery/internal/control"
	"orrery/internal/control/way"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// ListenOnLoopback listens on an address that only this host can connect to. The forwarded port may
// belong to a production node, and asks for no password.
func ListenOnLoopback(listen, port string) (net.Listener, error) {
	if listen == "" {
		listen = net.JoinHostPort("127.0.0.1", port)
	}
	name, number, err := net.SplitHostPort(listen)
	if err != nil || !validPort(number) && number != "0" {
		return nil, problem.New(problem.Usage, "%q is not ADDRESS:PORT", listen).Try("--listen 127.0.0.1:8080")
	}
	if name == "localhost" {
		name = "127.0.0.1"
	}
	if address, err := netip.ParseAddr(name); err != nil || !address.IsLoopback() {
		return nil, problem.New(problem.Usage, "%q is not a loopback address: other hosts could connect to it", name).
			Try("use --listen 127.0.0.1:%s, and ssh -L from other hosts", number)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(name, number))
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, problem.New(problem.Failed, "port %s of %s is already in use", number, name).
			Try("use --listen %s with another port, or 0 for any", net.JoinHostPort(name, "PORT"))
	case err != nil:
		return nil, problem.New(problem.Failed, "cannot listen on %s", listen).Because(err)
	}
	return l, nil
}

func validPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// A NodePort leads to a port of a node. It uses the instance that is live at the time of each
// connection.
type NodePort struct {
	Port      string
	session   *control.Session
	site      *site.Site
	node      *site.Node
	mu        sync.Mutex
	runner    host.Runner
	lookedFor time.Time
}

// FindNodePort returns the way to NODE:PORT.
func FindNodePort(c *control.Session, s *site.Site, target string) (*NodePort, error) {
	name, port, ok := strings.Cut(target, ":")
	if !ok || !validPort(port) {
		return nil, problem.New(problem.Usage, "%q is not NODE:PORT", target).Try("orrery forward portal:80")
	}
	n, err := control.DeclaredNode(s, name)
	if err != nil {
		return nil, err
	}
	return &NodePort{Port: port, session: c, site: s, node: n}, nil
}

// Runner returns the runner of the node. It looks for the node again at most once a second, because a
// switch may have replaced the instance.
func (w *NodePort) Runner(ctx context.Context) (host.Runner, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runner != nil && time.Since(w.lookedFor) < time.Second {
		return w.runner, nil
	}
	var err error
	w.runner, err = way.Runner(ctx, w.session, w.site, w.node.Name)
	w.lookedFor = time.Now()
	return w.runner, err
}

// Dial connects to the port from inside the node.
func (w *NodePort) Dial(ctx context.Context) (net.Conn, error) {
	in, err := w.Runner(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := in.Dial(ctx, "tcp", net.JoinHostPort("127.0.0.1", w.Port))
	if errors.Is(err, syscall.ECONNREFUSED) && len(w.node.NICs) > 0 {
		conn, err = in.Dial(ctx, "tcp", net.JoinHostPort(w.node.NICs[0].Address.String(), w.Port))
	}
	var said *problem.Problem
	switch {
	case err == nil || errors.As(err, &said):
		return conn, err
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, problem.New(problem.Failed, "nothing listens on port %s of node %s", w.Port, w.node.Name).
			Try("orrery shell %s -- ss -tln", w.node.Name)
	default:
		return nil, problem.New(problem.Failed, "cannot connect to port %s of node %s", w.Port, w.node.Name).Because(err)
	}
}

// Forward joins each connection accepted by l with one made by dial, until ctx ends. It calls told
// with the result of each dial.
func Forward(ctx context.Context, l net.Listener, dial func(context.Context) (net.Conn, error), told func(error)) {
	ctx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	defer l.Close() //nolint:errcheck // nobody listens any more
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	for {
		near, err := l.Accept()
		switch {
		case ctx.Err() != nil || errors.Is(err, net.ErrClosed):
			if near != nil {
				_ = near.Close()
			}
			return
		case err != nil: // for example, too many open files
			told(problem.New(problem.Failed, "cannot accept a connection").Because(err))
			time.Sleep(100 * time.Millisecond)
			continue
		}
		all.Go(func() {
			defer near.Close() //nolint:errcheck // all has been said
			far, err := dial(ctx)
			if ctx.Err() != nil {
				err = nil // the user interrupted it, which is not an error
			}
			told(err)
			if far != nil {
				defer far.Close() //nolint:errcheck // all has been said
				splice(ctx, near, far)
			}
		})
	}
}

// splice copies data between two connections in both directions, until both sides have closed. A side
// that has closed its sending direction may still receive.
func splice(ctx context.Context, near, far net.Conn) {
	end := func() {
		for _, c := range []net.Conn{near, far} {
			if tcp, ok := c.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0) // send a reset, so that truncated data does not look complete
			}
			_ = c.Close()
		}
	}
	defer context.AfterFunc(ctx, end)()
	var both sync.WaitGroup
	carry := func(to, from net.Conn) {
		if _, err := io.Copy(to, from); err != nil {
			end() // otherwise the other direction would wait forever
			return
		}
		if half, ok := to.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite() // the peer may be gone already
		}
	}
	both.Go(func() { carry(near, far) })
	both.Go(func() { carry(far, near) })
	both.Wait()
}
