package plan_test

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"orrery/internal/plan"
	"orrery/internal/site/twin"
)

// known returns the hosts file of a host.
func (f *fleet) known(t *testing.T, host int) string {
	t.Helper()
	text, err := os.ReadFile(f.hosts[host].Worker.Backends.Hosts.Path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// naming returns two hosts whose administrators want names of nodes in the hosts file.
func naming(t *testing.T) *fleet {
	t.Helper()
	f := newFleet("sv1", "sv2")
	for _, h := range f.hosts {
		file := h.Worker.Backends.Hosts
		if err := os.MkdirAll(strings.TrimSuffix(file.Path, "/hosts"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file.Path, []byte("127.0.0.1 localhost\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := file.Enable(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

const localhost = "127.0.0.1 localhost\n"

func blockOf(lines string) string {
	return localhost + "# BEGIN orrery rapid\n" + lines + "# END orrery rapid\n"
}

// TestHostNames: hosts know their own nodes while the site is up, whatever happens to a node or to the
// hosts file.
func TestHostNames(t *testing.T) {
	f := naming(t)
	want := func(what, sv1, sv2 string) {
		t.Helper()
		for i, want := range []string{sv1, sv2} {
			if got := f.known(t, i); got != want {
				t.Errorf("%s: sv%d has\n%s\nwant\n%s", what, i+1, got, want)
			}
		}
	}
	s := wiki(t, "", "")
	s.Nodes[2].Aliases = []string{"old"}
	f.reach(t, s)
	all := "10.0.0.11 web.rapid\n10.0.1.12 db.rapid\n10.0.0.13 idle.rapid old.rapid\n"
	want("up", blockOf(all), localhost)
	if again := f.up(t, s, plan.Goal{}); !again.Empty() {
		t.Errorf("the second plan is not empty:\n%s", text(again))
	}

	// Another program removes the block.
	if err := os.WriteFile(f.hosts[0].Worker.Backends.Hosts.Path, []byte(localhost), 0o644); err != nil {
		t.Fatal(err)
	}
	p := f.reach(t, s)
	if len(p.Steps) != 1 || p.Steps[0].Reason != "the hosts file of the host has other names" {
		t.Errorf("the plan is\n%s", text(p))
	}
	want("removed by another program", blockOf(all), localhost)

	// A network without a gateway cannot be reached from the host, a renamed node has its new name.
	s = wiki(t, "", "")
	s.Networks[1].Gateway = netip.Addr{}
	s.Nodes[0].Name = "www"
	f.reach(t, s)
	want("renamed", blockOf("10.0.0.11 www.rapid\n10.0.0.13 idle.rapid\n"), localhost)

	s.Nodes[0].Host = "sv2"
	f.reach(t, s)
	want("moved", blockOf("10.0.0.13 idle.rapid\n"), blockOf("10.0.0.11 www.rapid\n"))

	if r := f.run(plan.Down(s, f.observe(), plan.Goal{}), 4); !r.OK() {
		t.Fatalf("%+v", r.Failed)
	}
	want("down", localhost, localhost)
}

// TestHostNamesEnabledLater: names of a site that is up already come with Enable, and go with Disable.
func TestHostNamesEnabledLater(t *testing.T) {
	f := naming(t)
	file := f.hosts[0].Worker.Backends.Hosts
	if err := file.Disable(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := wiki(t, "", "")
	f.reach(t, s)
	if got := f.known(t, 0); got != localhost {
		t.Errorf("disabled, the hosts file is\n%s", got)
	}
	if err := file.Enable(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := f.up(t, s, plan.Goal{}); !p.Empty() || !strings.Contains(f.known(t, 0), "web.rapid") {
		t.Errorf("enabled, the plan is\n%s\nand the hosts file\n%s", text(p), f.known(t, 0))
	}
	if err := file.Disable(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p := f.up(t, s, plan.Goal{}); !p.Empty() || f.known(t, 0) != localhost {
		t.Errorf("disabled, the plan is\n%s\nand the hosts file\n%s", text(p), f.known(t, 0))
	}
}

// TestHostNamesOfTwins: a twin has the addresses of its original, so hosts do not know its nodes.
func TestHostNamesOfTwins(t *testing.T) {
	f := naming(t)
	made, err := twin.New(wiki(t, "", ""), twin.Options{Name: "dev"})
	if err != nil {
		t.Fatal(err)
	}
	f.reach(t, made)
	if got := f.known(t, 0); got != localhost {
		t.Errorf("the hosts file is\n%s", got)
	}
}

// TestHostNamesUndone: a run that is undone leaves the names that were there before.
func TestHostNamesUndone(t *testing.T) {
	f := naming(t)
	s := wiki(t, "", "")
	f.reach(t, s)
	before := f.known(t, 0)
	s = wiki(t, "", "")
	s.Nodes[0].Name = "www"
	p := f.up(t, s, plan.Goal{})
	if r := f.run(p, 4); !r.OK() || f.known(t, 0) == before {
		t.Fatalf("%+v\n%s", r.Failed, f.known(t, 0))
	}
	for _, step := range p.Steps {
		if step.Kind == plan.WriteNames {
			back := *step
			back.Kind, back.Names, back.OldNames, back.Needs = plan.RestoreNames, step.OldNames, step.Names, nil
			if err := f.hosts[0].Do(t.Context(), &back, func(string) {}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := f.known(t, 0); got != before {
		t.Errorf("the hosts file is\n%s\nbefore:\n%s", got, before)
	}
}
