package cli

import (
	"io"
	"os"
	"strings"
	"testing"

	"orrery/internal/problem"
)

// Standard input goes to one node as it is and to several in copies; what is typed at a terminal goes to none.
func TestExecInputs(t *testing.T) {
	given := strings.NewReader("text")
	a := &app{in: given}
	one, err := a.inputs(1, &execution{})
	if err != nil || one.of(0) != io.Reader(given) {
		t.Errorf("one node reads %v (%v)", one, err)
	}
	if _, err := a.inputs(3, &execution{parallel: 2, chosen: true}); problem.Exit(err) != int(problem.Usage) {
		t.Errorf("more nodes than may run at once: %v", err)
	}
	o := &execution{parallel: 2}
	many, err := a.inputs(3, o)
	if err != nil || o.parallel != 3 {
		t.Fatalf("%v, %d at once", err, o.parallel)
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
	if none, err := (&app{in: null}).inputs(3, &execution{parallel: 2, chosen: true}); err != nil || none.of(0) != nil {
		t.Errorf("of nothing they read %v (%v)", none, err)
	}
	onScreen(t, func(terminal *os.File) {
		if none, err := (&app{in: terminal}).inputs(1, &execution{}); err != nil || none.of(0) != nil {
			t.Errorf("of a terminal they read %v (%v)", none, err)
		}
	})
}
