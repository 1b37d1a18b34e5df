package bundle

import (
	"testing"

	"orrery/internal/lab/test"
)

// TestSeries: a series that no run writes, such as one without a step, is refused.
func TestSeries(t *testing.T) {
	for _, c := range []struct {
		series test.Series
		legal  bool
	}{
		{test.Series{Step: 1, Values: []float64{1, 2}}, true},
		{test.Series{Step: 0, Values: []float64{1, 2}}, false},
		{test.Series{Step: -1}, false},
		{test.Series{Step: 1, Values: make([]float64, mostSteps+1)}, false},
	} {
		trial := Trial{Series: []test.Series{c.series}}
		if err := trial.legal(); (err == nil) != c.legal {
			t.Errorf("%g s and %d values: %v", c.series.Step, len(c.series.Values), err)
		}
	}
}
