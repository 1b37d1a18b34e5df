package control_test

import (
	"strings"
	"testing"

	"orrery/internal/control/status"
	"orrery/internal/site/graph"
)

// TestFarPicture: nodes are drawn on the hosts that have them, and hosts that do not answer are
// reported.
func TestFarPicture(t *testing.T) {
	d, _ := farDesk(t)
	d.write("site.toml", strings.Replace(twoHosts, "host  = \"sv1\"\n", "", 1)) // db is placed
	draw := func(words ...string) {
		t.Helper()
		p, hidden, _, err := status.Draw(t.Context(), d.Session, d.site(), nil, false)
		d.must(err)
		svg := string(graph.Draw(p))
		for _, w := range words {
			if hidden || !strings.Contains(svg, w) {
				t.Errorf("%q is not in the picture: %s", w, svg[strings.Index(svg, "<desc"):strings.Index(svg, "<style")])
			}
		}
	}
	draw("3 nodes, as declared.", "host sv1: 0 nodes.", "host sv2, ops@10.8.1.2:2222: 2 nodes.", "not placed yet: 1 node.")
	d.up()
	draw("3 nodes: 3 healthy.", "host sv1: 1 node.", "host sv2, ops@10.8.1.2:2222: 2 nodes.")
	d.Links.Close()
	d.machine.others = nil
	_, _, silent, err := status.Draw(t.Context(), d.Session, d.site(), nil, false)
	d.must(err)
	if silent == nil || !strings.Contains(silent.Error(), "--without sv2") {
		t.Errorf("a host is silent: %v", silent)
	}
	draw("web1 is unknown.", "host sv2, ops@10.8.1.2:2222, does not answer: 2 nodes.")
	d.Without = []string{"sv2"}
	if _, _, silent, err = status.Draw(t.Context(), d.Session, d.site(), nil, false); silent != nil || err != nil {
		t.Errorf("a host is left out: %v, %v", silent, err)
	}
}
