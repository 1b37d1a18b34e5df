package control_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"orrery/internal/control/nodes"
	"orrery/internal/control/rehearsals"
	"orrery/internal/control/sites"
	"orrery/internal/host"
	"orrery/internal/member"
	"orrery/internal/problem"
	"orrery/internal/rehearsal"
	"orrery/internal/site"
)

// TestWitness: a host in a rehearsal reports its running live nodes at each check, until the reader
// is gone.
func TestWitness(t *testing.T) {
	d := newDesk(t)
	d.up()
	d.stage(700)
	_, err := sites.Stop(t.Context(), d.Session, d.site(), []string{"web2"})
	d.must(err)
	in, feed := io.Pipe()
	var out bytes.Buffer
	ended := make(chan error)
	go func() { ended <- rehearsals.Witness(t.Context(), d.Session, "toykat", in, &out) }()
	_, err = io.WriteString(feed, `[{"Node":"web1","Address":"10.99.1.21"}]`)
	d.must(err)
	d.must(feed.Close())
	d.must(<-ended)
	var seen rehearsal.HostView
	d.must(json.NewDecoder(&out).Decode(&seen))
	if !slices.Equal(seen.Nodes, []string{"db", "web1"}) || seen.Host == "" || len(seen.Views) > 0 {
		t.Errorf("seen was %+v", seen)
	}
	if err := rehearsals.Witness(t.Context(), d.Session, "toykat", bytes.NewBufferString("{"), io.Discard); err == nil {
		t.Error("targets that cannot be read are none")
	}
	d.machine.mishaps, d.machine.name = &mishaps{}, "sv1"
	d.machine.mishaps.order("sv1 Nodes.List", 1)
	if err := rehearsals.Witness(t.Context(), d.Session, "toykat", bytes.NewBufferString("[]"),
		io.Discard); !errors.Is(err, errMishap) {
		t.Errorf("a host that cannot tell of its nodes: %v", err)
	}
}

// TestNoRehearsal: a rehearsal needs hosts, and its subcommands need a rehearsal.
func TestNoRehearsal(t *testing.T) {
	d := newDesk(t)
	d.wantExit(rehearsals.Rehearse(t.Context(), d.Session, &site.Site{Name: "toykat"},
		host.Command{Args: []string{"true"}}), problem.Usage, "declares no hosts")
	_, err := rehearsals.Current(d.Session, d.site())
	d.wantExit(err, problem.Usage, "no rehearsal of site toykat is under way", "orrery rehearse")
}

// TestConsoleOf: the console of each existing node is available. It is refused if the node does not
// exist, or if the member may not enter it.
func TestConsoleOf(t *testing.T) {
	d := newDesk(t)
	d.up()
	_, err := sites.Down(t.Context(), d.Session, d.site(), []string{"web2"}, false)
	d.must(err)
	of := map[string]func(name string) error{
		"console": func(name string) error {
			_, err := nodes.ConsoleOf(t.Context(), d.Session, d.site(), name)
			return err
		},
		"screen": func(name string) error {
			_, err := nodes.ScreenOf(t.Context(), d.Session, d.site(), name)
			return err
		},
	}
	for what, ask := range of {
		for _, name := range []string{"db", "web1"} {
			d.wantExit(ask(name), problem.Unable, "node "+name+" has no", what, "lxc")
		}
		d.wantExit(ask("web2"), problem.Failed, "node web2 does not run", "orrery up web2")
		d.wantExit(ask("web11"), problem.Usage, "did you mean web1?")
	}
	// of the web nodes
	d.write("site.toml", strings.Replace(toykat, "[release.700]\n[release.701]\n", "privileged = true\n", 1))
	d.up()
	d.Member = &member.Person{Name: "ada"}
	for _, ask := range of {
		d.wantExit(ask("web1"), problem.Refused, "node web1 is privileged")
		d.wantExit(ask("db"), problem.Unable, "node db has no")
	}
}

// TestExec: a command on many nodes reads the same input on each, and the exit status says on how
// many it failed.
func TestExec(t *testing.T) {
	d := newDesk(t)
	d.up()
	run := func(o nodes.ExecOptions, on ...string) (*speech, error) {
		s := &speech{}
		_, err := nodes.Exec(t.Context(), d.Session, d.site(), on, o, func(all []*site.Node) nodes.Output {
			for i := range all {
				s.Of(i)
			}
			return s
		})
		return s, err
	}
	s, err := run(nodes.ExecOptions{Command: []string{"cat"}, Stdin: bytes.NewBufferString("hello"), Parallel: 1},
		"web*", "db")
	d.must(err)
	for i, out := range s.said {
		if out.String() != "hello" {
			t.Errorf("node %d has read %q", i, out)
		}
	}
	_, err = run(nodes.ExecOptions{Command: []string{"cat"}, Stdin: bytes.NewBufferString("hello"), Parallel: 2,
		Fixed: true}, "web*", "db")
	d.wantExit(err, problem.Usage, "goes to 3 nodes at once", "--parallel allows only 2")
	s, err = run(nodes.ExecOptions{Command: []string{"cat"}, Stdin: bytes.NewBufferString("hello"), Parallel: 1,
		Fixed: true}, "db")
	d.must(err)
	if s.said[0].String() != "hello" {
		t.Errorf("one node has read %q", s.said[0])
	}
	d.fault.Fail("Run", "", 2, nil)
	_, err = run(nodes.ExecOptions{Command: []string{"true"}, Parallel: 3}, "web*", "db")
	if problem.ExitCode(err) != problem.FailedNodes+2 {
		t.Errorf("where it fails on two nodes: %v", err)
	}
	_, err = run(nodes.ExecOptions{Command: []string{"true"}}, "nobody")
	d.wantExit(err, problem.Usage, "nobody")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = nodes.Exec(ctx, d.Session, d.site(), []string{"db"}, nodes.ExecOptions{Command: []string{"true"}},
		func([]*site.Node) nodes.Output { return &speech{} })
	if err == nil {
		t.Error("what is interrupted has succeeded")
	}
}
