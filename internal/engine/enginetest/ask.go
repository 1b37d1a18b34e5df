package enginetest

import (
	"bytes"
	"cmp"
	"context"
	"strings"
	"testing"
	"time"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/site/spec"
)

// within returns the time limit of any operation.
func (s *suite) within() time.Duration { return cmp.Or(s.Within, time.Minute) }

// suite is one test with its fixture. It makes nodes, runs them and sends them commands. A function
// that only one subject needs is in that subject's file.
type suite struct {
	*testing.T
	Fixture
}

// made returns a stopped node. It is destroyed after the test.
func (s *suite) made(name string, id int) *spec.Node {
	s.Helper()
	n := s.Node(name, id)
	s.create(n)
	return n
}

// running returns a running node.
func (s *suite) running(name string, id int) *spec.Node {
	s.Helper()
	n := s.made(name, id)
	s.start(n)
	return n
}

func (s *suite) create(n *spec.Node) {
	s.Helper()
	s.destroyAfter(n)
	s.must(s.Engine.Create(s.Context(), n))
}

func (s *suite) destroyAfter(n *spec.Node) {
	s.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), s.within())
		defer cancel()
		if err := s.Engine.Destroy(ctx, engine.RefOf(n)); err != nil {
			s.Errorf("cleaning up: %v", err)
		}
	})
}

func (s *suite) start(n *spec.Node) {
	s.Helper()
	s.must(s.Engine.Start(s.Context(), engine.RefOf(n)))
}

func (s *suite) stop(n *spec.Node) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), s.within()/2)
	defer cancel()
	s.must(s.Engine.Stop(ctx, engine.RefOf(n)))
}

func (s *suite) destroy(n *spec.Node) {
	s.Helper()
	s.must(s.Engine.Destroy(s.Context(), engine.RefOf(n)))
}

func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// listed returns a node from List.
func (s *suite) listed(n *spec.Node) observe.Node {
	s.Helper()
	o, ok := s.find(n)
	if !ok {
		s.Fatalf("node %s is not listed", n.Name)
	}
	return o
}

func (s *suite) find(n *spec.Node) (observe.Node, bool) {
	s.Helper()
	all, err := s.Engine.List(s.Context(), n.Site)
	s.must(err)
	for _, o := range all {
		if o.ID == n.ID {
			return o, true
		}
	}
	return observe.Node{}, false
}

func (s *suite) wantState(n *spec.Node, want observe.State) {
	s.Helper()
	if got := s.listed(n).State; got != want {
		s.Fatalf("node %s is %s, not %s", n.Name, got, want)
	}
}

func (s *suite) runner(n *spec.Node) host.Runner { return s.Engine.Runner(engine.RefOf(n)) }

// ask runs a command on a node and returns its output without the last newline.
func (s *suite) ask(n *spec.Node, args ...string) string {
	s.Helper()
	return s.askAs(n, host.Command{Args: args})
}

func (s *suite) askAs(n *spec.Node, c host.Command) string {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), s.within())
	defer cancel()
	var out bytes.Buffer
	c.Stdout = &out
	s.must(s.runner(n).Run(ctx, c))
	return strings.TrimSuffix(out.String(), "\n")
}

func (s *suite) put(n *spec.Node, f host.File) {
	s.Helper()
	if f.Mode == 0 {
		f.Mode = 0o644
	}
	s.must(s.runner(n).Put(s.Context(), f))
}

// has reports whether a file is on a node.
func (s *suite) has(n *spec.Node, path string) bool {
	s.Helper()
	return s.runner(n).Run(s.Context(), host.Command{Args: []string{"cat", path}}) == nil
}

func (s *suite) want(what, got, want string) {
	s.Helper()
	if got != want {
		s.Errorf("%s: got %q, want %q", what, got, want)
	}
}
