package control_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"orrery/internal/control/nodes"
	"orrery/internal/control/sites"
	"orrery/internal/control/way"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/problem"
)

// A speech records what nodes print, by node.
type speech struct {
	mu    sync.Mutex
	said  []*bytes.Buffer
	ended int
}

func (s *speech) Of(i int) nodes.NodeOutput {
	for len(s.said) <= i {
		s.said = append(s.said, &bytes.Buffer{})
	}
	return speaker{s, s.said[i]}
}
func (s *speech) Close() error { return nil }

type speaker struct {
	*speech
	out *bytes.Buffer
}

func (s speaker) Out() io.Writer  { return s.out }
func (s speaker) Errs() io.Writer { return s.out }
func (s speaker) End(nodes.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended++
}

func (d *desk) crowd(names ...string) *nodes.Group {
	d.Helper()
	s := d.site()
	in, err := way.Runners(d.Context(), d.Session, s)
	d.must(err)
	c := &nodes.Group{Runners: in, Parallel: 2}
	for _, name := range names {
		n, _ := s.Node(name)
		c.Nodes = append(c.Nodes, n)
	}
	return c
}

// TestCrowd: a command on many nodes has a separate result and output for each. A node that does
// not run has an error, and a command that exceeds the timeout is ended.
func TestCrowd(t *testing.T) {
	d := newDesk(t)
	d.up()
	_, err := sites.Stop(t.Context(), d.Session, d.site(), []string{"web2"})
	d.must(err)
	c := d.crowd("db", "web1", "web2")
	run := func(ctx context.Context, args ...string) (*speech, []nodes.Result, error) {
		s := &speech{}
		all, err := c.RunShown(ctx, s, func(ctx context.Context, _ int, in host.Runner, to nodes.NodeOutput) error {
			return in.Run(ctx, host.Command{Args: args, Stdout: to.Out(), Stderr: to.Errs()})
		})
		return s, all, err
	}
	s, all, err := run(t.Context(), "echo", "hello")
	d.must(err)
	if s.said[0].String() != "hello\n" || s.said[1].String() != "hello\n" || s.said[2].Len() > 0 || s.ended != 3 {
		t.Errorf("printed was %s, and %d have ended", s.said, s.ended)
	}
	if got := nodes.Failed(all); strings.Join(got, " ") != "web2" ||
		!strings.Contains(all[2].Err.Error(), "node web2 does not run") {
		t.Errorf("failed have %v: %v", got, all[2].Err)
	}
	d.must(d.of("toykat").Freeze(t.Context(), engine.Ref{Site: "toykat", ID: 21, Name: "web1"}))
	frozen, err := nodes.NewGroup(t.Context(), d.Session, d.site(), []string{"web1"}, 1)
	d.must(err)
	all, err = frozen.RunShown(t.Context(), &speech{},
		func(ctx context.Context, _ int, in host.Runner, _ nodes.NodeOutput) error {
			return in.Run(ctx, host.Command{Args: []string{"true"}})
		})
	if err != nil || all[0].Err == nil ||
		!strings.Contains(all[0].Err.Error(), "node web1 is frozen (orrery start web1)") {
		t.Errorf("of a node that stands still: %+v, %v", all, err)
	}
	c.Nodes, c.Timeout = c.Nodes[:1], 10*time.Millisecond
	if _, all, err = run(t.Context(), "sleep", "60"); err != nil || all[0].Err == nil ||
		!strings.Contains(all[0].Err.Error(), "not done within 10ms") {
		t.Errorf("%+v, %v", all, err)
	}
	c.Timeout = 0
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, _, err = run(ctx, "sleep", "60")
	d.wantExit(err, problem.Interrupted)
}

// TestForward: a way leads to a port of a node on whatever address it listens, and otherwise
// returns the reason.
func TestForward(t *testing.T) {
	d := newDesk(t)
	d.up()
	w, err := nodes.FindNodePort(d.Session, d.site(), "web1:80")
	d.must(err)
	_, err = w.Dial(t.Context())
	d.wantExit(err, problem.Failed, "nothing listens on port 80 of node web1", "orrery shell web1")
	d.must(d.of("toykat").Listen(engine.Ref{Site: "toykat", ID: 21, Name: "web1"}, "80", func(c net.Conn) {
		_, _ = io.WriteString(c, "hello")
		_ = c.Close()
	}))
	c, err := w.Dial(t.Context())
	d.must(err)
	text, err := io.ReadAll(c)
	if string(text) != "hello" {
		t.Errorf("%q, %v", text, err)
	}
	d.fault.Fail("Dial", "web1", 1, nil)
	_, err = w.Dial(t.Context())
	d.wantExit(err, problem.Failed, "connect to port 80 of node web1", "injected failure")
	_, err = sites.Stop(t.Context(), d.Session, d.site(), []string{"web2"})
	d.must(err)
	w, err = nodes.FindNodePort(d.Session, d.site(), "web2:80")
	d.must(err)
	_, err = w.Dial(t.Context())
	d.wantExit(err, problem.Failed, "node web2 does not run")
}

// TestCopyNowhere: errors of a copy name the node concerned, whether found in advance or during the
// copy.
func TestCopyNowhere(t *testing.T) {
	d := newDesk(t)
	d.up()
	_, err := sites.Stop(t.Context(), d.Session, d.site(), []string{"web2"})
	d.must(err)
	s := d.site()
	for _, args := range [][]string{{"nobody:/etc/motd", "/tmp/"}, {"/tmp/x", "nobody:/etc/"}} {
		_, err := nodes.NewCopyJob(t.Context(), d.Session, s, args[:1], args[1])
		d.wantExit(err, problem.Usage, "nobody")
	}
	c, err := nodes.NewCopyJob(t.Context(), d.Session, s, []string{"web2:/etc/motd"}, t.TempDir())
	d.must(err)
	if c.Several() {
		t.Error("it is of one node")
	}
	d.wantExit(c.Once(t.Context(), func(int64) {}), problem.Failed, "node web2 does not run")
	c, err = nodes.NewCopyJob(t.Context(), d.Session, s, []string{"web*:/etc/motd"}, t.TempDir())
	d.must(err)
	if !c.Several() || len(c.Nodes) != 2 {
		t.Errorf("%+v", c.Nodes)
	}
	all, err := c.Each(t.Context(), &speech{}, func(int64) {})
	d.must(err)
	if len(all) != 2 || all[1].Err == nil || !strings.Contains(all[1].Err.Error(), "node web2 does not run") {
		t.Errorf("%+v", all)
	}
}
