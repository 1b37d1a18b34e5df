package bundle

import (
	"path/filepath"
	"testing"

	"orrery/internal/lab/test"
)

// TestSeries: a series that no run writes, such as one without a step, is rejected.
func TestSeries(t *testing.T) {
	for _, c := range []struct {
		series test.Series
		legal  bool
	}{
		{test.Series{Step: 1, Values: []float64{1, 2}}, true},
		{test.Series{Step: 0, Values: []float64{1, 2}}, false},
		{test.Series{Step: -1}, false},
		{test.Series{Step: 1, Values: make([]float64, maxSteps+1)}, false},
	} {
		trial := Trial{Series: []test.Series{c.series}}
		if err := trial.validate(); (err == nil) != c.legal {
			t.Errorf("%g s and %d values: %v", c.series.Step, len(c.series.Values), err)
		}
	}
}

// TestCopied: the ID of a copied bundle is the name of its directory, so that it differs from the
// original's.
func TestCopied(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "second")
	w, err := Create(t.Context(), dir, Manifest{Format: Format, ID: "first", State: Done})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, name := range []string{dir, dir + "/", "."} {
		if c, err := Read(name); err != nil || c.Manifest.ID != "second" {
			t.Errorf("%s: %v %v", name, c, err)
		}
	}
}
