package status

import (
	"testing"

	"orrery/internal/observe"
)

// TestJudge: the result of a probe determines the health.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		was, want string
		drift     []observe.Drift
	}{
		{Healthy, Healthy, nil}, {"not proven", Healthy, nil}, {"-", "-", nil}, {"not configured", "not configured", nil},
		{Healthy, Drifted, []observe.Drift{{Kind: observe.DriftFile}}},
		{"-", Drifted, []observe.Drift{{Kind: observe.DriftService}}},
		{Healthy, Unhealthy, []observe.Drift{{Kind: observe.DriftFile}, {Kind: observe.DriftHealth}}},
		{Healthy, Unhealthy, []observe.Drift{{Kind: observe.DriftNode}}},
	} {
		r := Node{State: "running", Health: c.was, Drift: c.drift}
		if r.setHealth(); r.Health != c.want || r.IsGood() != (c.want == Healthy || c.want == "-") {
			t.Errorf("%s with %v is %s", c.was, c.drift, r.Health)
		}
	}
}

// TestRecall: an earlier result counts until a newer probe begins.
func TestRecall(t *testing.T) {
	r := Node{State: "running", Health: Healthy}
	if r.setLastHealth(&observe.HealthFailure{Found: "health tcp 80 is failing"}); r.IsGood() || r.Health != Unhealthy ||
		r.Detail == "" {
		t.Errorf("it is %s: %s", r.Health, r.Detail)
	}
	if r.setLastHealth(nil); !r.IsGood() || r.Detail != "" {
		t.Errorf("it is %s: %s", r.Health, r.Detail)
	}
}
