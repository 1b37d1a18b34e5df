package report

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOverTime: a figure with a value for each second is drawn over the time of a trial, so that
// events during the trial are visible.
func TestOverTime(t *testing.T) {
	s := simulate(7)
	s.rounds, s.seconds = 5, 30
	r := analysed(t, s)
	page := text(t, r.HTML)
	if *look != "" {
		if err := os.WriteFile(filepath.Join(*look, "overtime.html"), []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	wellFormed(t, "overtime.html", page)
	all := r.page().OverTime("net")
	if len(all) != 1 || all[0].Name != "tcp forward 1 stream" || len(all[0].Charts) != 7 {
		t.Fatalf("%+v", all)
	}
	if got := r.page().OverTime("micro"); got != nil {
		t.Errorf("%d plots of what was not told over time", len(got))
	}
	for _, o := range r.over {
		if away := o.Median[12] == 0; len(o.Median) != 30 || away != strings.HasPrefix(o.Setting, "veth") {
			t.Errorf("%s: %v", o.Setting, o.Median)
		}
		if o.Least[3] > o.Median[3] || o.Most[3] < o.Median[3] {
			t.Errorf("%s: %g to %g around %g", o.Setting, o.Least[3], o.Most[3], o.Median[3])
		}
	}
}
