package report

import (
	"encoding/json"
	"testing"

	"orrery/internal/lab/test/capture"
)

// TestCaptureDetail: the curve is drawn from the detail that package capture stores.
func TestCaptureDetail(t *testing.T) {
	d, err := json.Marshal(capture.Detail{Curve: []capture.Point{
		{Search: "search", Rate: 1e9, Achieved: 0.999e9, Sent: 100, Received: 90, Valid: true,
			Drops: &capture.Drops{Lost: 1500, Where: map[string]uint64{"socket": 1200, "application": 300}}},
		{Search: "search", Rate: 9e9, Achieved: 5e9, Sent: 100, Received: 10},
		{Search: "paper", Rate: 0.9e9, Achieved: 0.9e9, Sent: 100, Received: 100, Valid: true},
	}})
	if err != nil {
		t.Fatal(err)
	}
	rehearsal, counted := trial(0, 0, "bare", 1), trial(1, 0, "bare", 1)
	rehearsal.Detail, counted.Detail = d, d
	r := Analyse(small(rehearsal, counted))
	c := r.Tests[0].Curves
	if len(c) != 1 || len(c[0].Points) != 2 || c[0].Points[0].Rate != 0.999e9 || c[0].Points[0].Lost < 0.0999 ||
		c[0].Points[1].Lost != 0 {
		t.Errorf("curves %+v", c)
	}
	if got := r.Tests[0].Deaths[0].Words(); got != "socket buffer 1\u202f200 (80 %), application 300 (20 %)" {
		t.Errorf("deaths %q", got)
	}
}
