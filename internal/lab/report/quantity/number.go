// Package quantity formats measured numbers.
//
// A Number may be missing. A Scale is the unit (with k, M, ms, µs, …) and the digits that suit the
// numbers of one row. One row has one scale, so that its numbers can be compared at a glance.
package quantity

import (
	"encoding/json"
	"math"
)

// A Number may be missing (NaN) or infinite, which is null in JSON.
type Number float64

// None returns a missing number.
func None() Number { return Number(math.NaN()) }

// IsFinite reports whether the number exists and is finite.
func (n Number) IsFinite() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// MarshalJSON returns the number or null.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.IsFinite() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON reads null as None.
func (n *Number) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*n = None()
		return nil
	}
	return json.Unmarshal(text, (*float64)(n))
}

// Floats converts numbers to float64 for calculations.
func Floats(all []Number) []float64 {
	x := make([]float64, len(all))
	for i, n := range all {
		x[i] = float64(n)
	}
	return x
}
