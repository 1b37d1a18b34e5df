package plan_test

import (
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// TestRenew: by default, machines whose programs were replaced are renewed. With a selection, all
// selected machines are. Impossible requests are reported.
func TestRenew(t *testing.T) {
	at := func(name string, outdated ...string) observe.Node {
		return observe.Node{Node: spec.Node{Site: "karoo", Name: name, Engine: "kvm"}, State: observe.Running,
			Outdated: outdated}
	}
	old, current, box := at("old", "qemu-system-x86_64"), at("current"), at("box")
	box.Engine = "lxc"
	stopped := at("stopped")
	stopped.State = observe.Stopped
	hosts := func(stuck observe.Missing) []observe.Host {
		return []observe.Host{{
			Name: "sv1", Nodes: []observe.Node{old, current, box, stopped},
			Engines: map[string]observe.Capabilities{"kvm": {Accel: observe.KVM, Stuck: stuck}, "lxc": {}},
		}}
	}
	s := observatory()
	some := func(names ...string) plan.Goal {
		g := plan.Goal{Nodes: map[string]bool{}}
		for _, name := range names {
			g.Nodes[name] = true
		}
		return g
	}
	for name, c := range map[string]struct {
		goal  plan.Goal
		stuck observe.Missing
		lines []string
		err   string
		exit  problem.Kind
	}{
		"all": {plan.Goal{}, observe.Missing{}, []string{"node old: renew: replaced on the host: qemu-system-x86_64"},
			"", 0},
		"chosen": {some("current", "old"), observe.Missing{},
			[]string{"node old: renew: replaced on the host: qemu-system-x86_64", "node current: renew: requested"},
			"", 0},
		"a container": {some("box"), observe.Missing{}, nil, "is not a virtual machine", problem.Unable},
		"stopped":     {some("stopped"), observe.Missing{}, nil, "is stopped", problem.Surprise},
		"too old": {some("old"), observe.Missing{What: "QEMU 7.2 cannot", Cure: "install a newer one"}, nil,
			"install a newer one", problem.Unable},
	} {
		p, err := plan.Renew(s, hosts(c.stuck), c.goal)
		if c.err != "" {
			if err == nil || problem.ExitCode(err) != int(c.exit) || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		wantLines(t, p, c.lines...)
		for i, step := range p.Steps {
			if len(step.Needs) != min(i, 1) {
				t.Errorf("%s: %s waits for %v", name, step, step.Needs)
			}
		}
	}
}
