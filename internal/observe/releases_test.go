package observe

import (
	"slices"
	"testing"
)

// TestConfirm: what one record confirms is not confirmed in those that it was made from: they are
// put back if a host cannot be told.
func TestConfirm(t *testing.T) {
	was := Releases{Confirmed: []int{700, 701}}
	r := was
	r.Confirm(700)
	if !slices.Equal(r.Confirmed, []int{701, 700}) || !slices.Equal(was.Confirmed, []int{700, 701}) {
		t.Errorf("confirmed are %v, and were %v", r.Confirmed, was.Confirmed)
	}
}
