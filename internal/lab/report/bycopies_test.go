package report

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/lab/bundle"
	"orrery/internal/lab/test"
)

// crowd returns a run with 1 to 27 concurrent clients, like Rx-OSD's.
func crowd() *simulation {
	s := simulate(5)
	s.rounds = 5
	s.head.Tests = nil
	for n := 1; n <= 27; n++ {
		name := "clients"
		if n > 1 {
			name = fmt.Sprintf("clients x%d", n)
		}
		s.head.Tests = append(s.head.Tests, bundle.Test{Name: name, Kind: "disk", Copies: n, Figures: []test.Figure{
			{Name: "sequential write", Unit: "B/s", Better: test.More, Aggregate: test.Mean},
			{Name: "random read 4k", Unit: "1/s", Better: test.More, Aggregate: test.Sum}}})
	}
	return s
}

// TestByCopies: a test with many numbers of copies has a plot for each figure and setting, with a
// spot for each number. A test with two numbers has no plot.
func TestByCopies(t *testing.T) {
	r := analysed(t, crowd())
	page := text(t, r.HTML)
	if *look != "" {
		if err := os.WriteFile(filepath.Join(*look, "crowd.html"), []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	wellFormed(t, "crowd.html", page)
	all := r.Tests.ByCopies()
	if len(all) != 2 || all[0].Name != "clients, sequential write" || len(all[0].Charts) != 5 {
		t.Fatalf("%d plots", len(all))
	}
	for _, c := range all[1].Charts {
		if n := strings.Count(string(c.Plot), `class="spot"`); n != 27 {
			t.Errorf("%s has %d spots", c.Name, n)
		}
		if behind := strings.Contains(string(c.Plot), "line behind"); behind == (c.Name == "bare") {
			t.Errorf("%s has bare behind it: %v", c.Name, behind)
		}
	}
	if !strings.Contains(page, `href="#copies"`) {
		t.Error("the page does not lead to them")
	}
	if r := analysed(t, simulate(7)); len(r.Tests.ByCopies()) != 0 {
		t.Error("a test with one number of copies has a plot of them")
	}
}
