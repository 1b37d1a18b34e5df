package routines

import (
	"path/filepath"
	"testing"
	"time"

	"orrery/internal/control/status"
	"orrery/internal/observe"
)

// TestDisk: a disk is full at 90 %, and counts as right again below 85 %.
func TestDisk(t *testing.T) {
	for free, want := range map[int64]string{0: "full", 10: "full", 11: "doubtful", 15: "doubtful", 16: "", 100: ""} {
		got := ""
		for _, f := range ofDisk("disk", &observe.Disk{Total: 100, Free: free}) {
			if got = "full"; f.Doubtful {
				got = "doubtful"
			}
		}
		if got != want {
			t.Errorf("with %d %% free, it is %q, not %q", free, got, want)
		}
	}
	if all := ofDisk("disk", nil); all != nil {
		t.Errorf("of an unknown disk: %v", all)
	}
	for _, dir := range []string{t.TempDir(), filepath.Join(t.TempDir(), "not", "yet")} {
		if d := diskOf(t.Context(), dir); d == nil || d.Total <= 0 || d.Free > d.Total {
			t.Errorf("the disk of %s is %+v", dir, d)
		}
	}
}

// TestNode: a node that is as declared, in quarantine or not declared any more is not reported.
func TestNode(t *testing.T) {
	running := status.Node{Node: "a", State: "running", Health: status.Healthy}
	with := func(change func(*status.Node)) status.Node {
		n := running
		change(&n)
		return n
	}
	for name, c := range map[string]struct {
		node status.Node
		why  string
	}{
		"healthy":    {running, ""},
		"off":        {status.Node{State: "stopped", Health: "off"}, ""},
		"quarantine": {with(func(n *status.Node) { n.Health, n.Quarantine = status.Unhealthy, true }), ""},
		"undeclared": {with(func(n *status.Node) { n.Undeclared = true }), ""},
		"drifted":    {with(func(n *status.Node) { n.Health = status.Drifted }), ""},
		"stopped":    {status.Node{State: "stopped", Health: "-"}, "stopped"},
		"unproven":   {with(func(n *status.Node) { n.Health = "not proven" }), "not proven"},
		"sick":       {with(func(n *status.Node) { n.Health, n.Detail = status.Unhealthy, "\x1b" }), `\x1b`},
		"sick now": {with(func(n *status.Node) {
			n.Health = status.Unhealthy
			n.Drift = []observe.Drift{{Kind: observe.DriftHealth, Subject: "x", Found: "y", Want: "z"}}
		}), "health x is y, not z"},
		"failed": {with(func(n *status.Node) {
			n.Health = status.Failed
			n.Failure = &status.Failure{StepFailure: observe.StepFailure{Found: "no\nsuch", At: time.Now()}}
		}), `no\nsuch`},
		"unknown": {status.Node{State: status.Unknown}, "unknown"},
	} {
		f, wrong := ofNode(&c.node)
		if wrong != (c.why != "") || f.Why != c.why || f.Doubtful != (name == "unknown") {
			t.Errorf("%s: %+v, %v", name, f, wrong)
		}
	}
}
