// Package serve runs the server of a test at the far end of its traffic.
//
// Start returns when the server listens. It finds that out from the place's table of sockets, not
// by connecting, because the server would count a connection as a client.
package serve

import (
	"context"
	"errors"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/lab/place"
	"orrery/internal/problem"
)

// How often and how long await reads the table of sockets.
const (
	pollInterval  = 20 * time.Millisecond
	listenTimeout = 10 * time.Second
)

// A Server is a command that runs at the far end until it is stopped.
type Server struct {
	place  *place.Place
	name   string
	cancel context.CancelFunc
	done   chan struct{}
	out    host.TailBuffer
	err    error
}

// Start starts a command in a place and returns when a process listens on the port.
func Start(ctx context.Context, p *place.Place, protocol Protocol, port int, c host.Command) (*Server, error) {
	if err := WaitUntilFree(ctx, p, protocol, port); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	s := &Server{place: p, name: c.Args[0], cancel: cancel, done: make(chan struct{})}
	c.Stdout, c.Stderr = &s.out, &s.out
	go func() {
		s.err = p.Run(ctx, c)
		close(s.done)
	}()
	if err := s.waitListening(ctx, protocol, port); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// waitListening waits until the server listens. It returns an error if the server ends or takes too long.
func (s *Server) waitListening(ctx context.Context, protocol Protocol, port int) error {
	deadline := time.Now().Add(listenTimeout)
	for {
		taken, err := ListeningPorts(ctx, s.place, protocol)
		if err != nil {
			return problem.New(problem.Failed, "the sockets of the place cannot be read").At(s.place.Name).Because(err)
		}
		if taken[port] {
			return nil
		}
		select {
		case <-s.done:
			return s.endedError(protocol, port)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pollInterval):
		}
		if time.Now().After(deadline) {
			return problem.New(problem.Failed, "the server %s does not listen on %s port %d after %s", s.name,
				protocol, port, listenTimeout).
				At(s.place.Name).Because(s.outputError())
		}
	}
}

func (s *Server) endedError(protocol Protocol, port int) error {
	return problem.New(problem.Failed, "the server %s ended before listening on %s port %d", s.name, protocol, port).
		At(s.place.Name).Because(s.outputError()).Try("run it manually there")
}

// outputError returns the output of the server as an error, or else how it ended.
func (s *Server) outputError() error {
	if text := strings.TrimSpace(s.out.String()); text != "" {
		return errors.New(text)
	}
	select {
	case <-s.done:
		if s.err != nil {
			return s.err
		}
		return errors.New("it printed nothing")
	default:
		return errors.New("it has printed nothing yet")
	}
}

// WaitOrStop waits until a server for one client has ended, and stops it if it takes too long.
func (s *Server) WaitOrStop() {
	select {
	case <-s.done:
	case <-time.After(2 * time.Second):
	}
	s.Stop()
}

// Wait waits until the server has ended and returns its output.
func (s *Server) Wait() (string, error) {
	<-s.done
	return s.out.String(), s.err
}

// Stop ends the server and all of its processes.
func (s *Server) Stop() {
	s.cancel()
	<-s.done
}

// Output returns the end of the server's output.
func (s *Server) Output() string { return strings.TrimSpace(s.out.String()) }

// WaitUntilFree waits briefly until no process listens on a port, in case a server is just ending. It
// returns an error if the port stays in use.
func WaitUntilFree(ctx context.Context, p *place.Place, protocol Protocol, port int) error {
	deadline := time.Now().Add(2 * time.Second)
	for {
		taken, err := ListeningPorts(ctx, p, protocol)
		if err != nil {
			return problem.New(problem.Failed, "the sockets of the place cannot be read").At(p.Name).Because(err)
		}
		if !taken[port] {
			return nil
		}
		if time.Now().After(deadline) {
			return problem.New(problem.Failed, "%s port %d is in use", protocol, port).At(p.Name).
				Try("set another port for the test, or stop the process that uses it: ss -lpn 'sport = :%d'", port)
		}
		if err := host.Sleep(ctx, 10*pollInterval); err != nil {
			return err
		}
	}
}
