package observe

import (
	"slices"
	"testing"
)

// TestConfirm: Confirm does not change the records that a record was copied from, because they are
// restored if a host cannot be told.
func TestConfirm(t *testing.T) {
	before := Releases{Confirmed: []int{700, 701}}
	r := before
	r.Confirm(700)
	if !slices.Equal(r.Confirmed, []int{701, 700}) || !slices.Equal(before.Confirmed, []int{700, 701}) {
		t.Errorf("confirmed are %v, and were %v", r.Confirmed, before.Confirmed)
	}
}
