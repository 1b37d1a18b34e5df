package nodes

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"

	"orrery/internal/problem"
	"orrery/internal/site"
)

// TestInputs: standard input is passed to one node unchanged, and to several nodes as copies. Input
// from a terminal is not passed on.
func TestInputs(t *testing.T) {
	given := strings.NewReader("text")
	crowd := func(n, parallel int) *Group { return &Group{Nodes: make([]*site.Node, n), Parallel: parallel} }
	one, err := crowd(1, 0).inputs(given, false)
	if err != nil || one.of(0) != io.Reader(given) {
		t.Errorf("one node reads %v (%v)", one, err)
	}
	if _, err := crowd(3, 2).inputs(given, true); problem.ExitCode(err) != int(problem.Usage) {
		t.Errorf("more nodes than may run at once: %v", err)
	}
	three := crowd(3, 2)
	many, err := three.inputs(given, false)
	if err != nil || three.Parallel != 3 {
		t.Fatalf("%v, %d at once", err, three.Parallel)
	}
	many.close(1)
	got := make(chan string)
	for _, i := range []int{0, 2} {
		go func() {
			text, _ := io.ReadAll(many.of(i))
			got <- string(text)
		}()
	}
	if one, two := <-got, <-got; one != "text" || two != "text" {
		t.Errorf("they read %q and %q", one, two)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if none, err := crowd(3, 2).inputs(null, true); err != nil || none.of(0) != nil {
		t.Errorf("of nothing they read %v (%v)", none, err)
	}
	ours, terminal, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer ours.Close()
	defer terminal.Close()
	if none, err := crowd(1, 0).inputs(terminal, false); err != nil || none.of(0) != nil {
		t.Errorf("of a terminal they read %v (%v)", none, err)
	}
}
