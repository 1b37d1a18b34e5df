package nodedir

import (
	"os"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/observe"
	"orrery/internal/site"
)

// TestObserve: an engine sees its own nodes, sorted by name, and looks at those with a record. A
// node whose record is lost still belongs to its engine only.
func TestObserve(t *testing.T) {
	mayChown(t)
	n := nodesIn(t.TempDir())
	other := *n
	other.Engine = site.KVM
	for id, name := range map[int]string{1: "b", 2: "a", 3: "lost"} {
		s := privileged(id, "one")
		s.Name = name
		must(t, n.Create(t.Context(), s))
	}
	machine := privileged(4, "one")
	machine.Name, machine.Engine = "machine", site.KVM
	must(t, other.Create(t.Context(), machine))
	for _, id := range []int{3, 4} {
		must(t, os.WriteFile(n.Dir(engine.Ref{Site: "s", ID: id}).File("node.json"), nil, 0o600))
	}
	sees := func(n *Nodes) (all string) {
		nodes, err := n.Observe("s", func(o *observe.Node) {
			if o.Name == "b" {
				o.State = observe.Running
			}
		})
		must(t, err)
		for _, o := range nodes {
			all += o.Name + " " + string(o.State) + " " + o.Engine + "\n"
		}
		return all
	}
	if got := sees(n); got != "a stopped lxc\nb running lxc\nnode-3 broken lxc\n" {
		t.Errorf("of the first:\n%s", got)
	}
	if got := sees(&other); got != "node-4 broken kvm\n" {
		t.Errorf("of the other:\n%s", got)
	}
}
