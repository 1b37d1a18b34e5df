package control_test

import (
	"strings"
	"testing"

	"orrery/internal/control/sites"
	"orrery/internal/control/status"
	"orrery/internal/observe"
)

// TestEmulated: plan and up report that virtual machines are emulated, once for each host, and
// status for each node.
func TestEmulated(t *testing.T) {
	const want = "on host local virtual machines run in software emulation, many times slower than containers: db, web1, web2; `orrery doctor` shows why"
	d := newDesk(t)
	d.up()
	r, err := status.Read(t.Context(), d.Session, d.site(), nil)
	d.must(err)
	if r.Nodes[0].Accel != "" || strings.Contains(d.watch.text(), "emulation") {
		t.Errorf("%+v, %s", r.Nodes[0], d.watch.text())
	}
	d.of("toykat").Can.Accel = observe.TCG
	p, err := sites.Preview(t.Context(), d.Session, nil, sites.PreviewOptions{})
	d.must(err)
	if !p.Empty() || len(p.Warnings) != 1 || p.Warnings[0] != want {
		t.Errorf("plan warns %q", p.Warnings)
	}
	d.up()
	if n := strings.Count(d.watch.text(), want); n != 1 {
		t.Errorf("up warned %d times: %s", n, d.watch.text())
	}
	r, err = status.Read(t.Context(), d.Session, d.site(), nil)
	d.must(err)
	if r.Nodes[0].Accel != observe.TCG { // cli/table makes a warning of this
		t.Errorf("%+v", r.Nodes[0])
	}
}
