package drill

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestRecord: a record contains the result, and text that is none has no result.
func TestRecord(t *testing.T) {
	r := Result{Service: "portal", Fault: Cut, At: time.Unix(1, 0).UTC(), Holder: "a", Next: "b", Gap: 0.5,
		Answers: []string{"b"}}
	if got, ok := Parse(Format(r)); !ok || !reflect.DeepEqual(got, r) {
		t.Errorf("%+v, %t", got, ok)
	}
	for _, text := range []string{"", "{}", "x", `{"fault":"melt"}`,
		`{"fault":"cut","holder":"` + strings.Repeat("x", 9000) + `"}`} {
		if got, ok := Parse(text); ok {
			t.Errorf("%.20q is %+v", text, got)
		}
	}
	if name := RecordName(strings.Repeat("a", 63)); len(name) > 63 {
		t.Errorf("%s is no name of a record", name)
	}
}

// TestString: the sentence tells whether another node took over, and whether it holds the address alone.
func TestString(t *testing.T) {
	for want, r := range map[string]Result{
		"kill of a: no other node took over": {Fault: Kill, Holder: "a"},
		"stop of a: no gap, b took over":     {Fault: Stop, Holder: "a", Next: "b", Answers: []string{"b"}},
		"cut of a: gap 0.52 s, b took over":  {Fault: Cut, Holder: "a", Next: "b", Gap: 0.52, Answers: []string{"b"}},
		"freeze of a: no gap, b took over; at the end, 2 machines answered": {Fault: Freeze, Holder: "a", Next: "b",
			Answers: []string{"a", "b"}},
	} {
		if got := r.String(); got != want {
			t.Errorf("%q instead of %q", got, want)
		}
		if r.Good() != (r.Next != "" && len(r.Answers) == 1) {
			t.Errorf("%q is good: %t", want, r.Good())
		}
	}
}
