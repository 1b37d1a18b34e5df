// Package quantity formats measured numbers: a Number that may be missing, and the Scale (k, M, ms,
// µs, …) and digits that suit a row of them. One row has one scale, so that its numbers can be
// compared by eye.
package quantity

import (
	"encoding/json"
	"math"
)

// A Number is null in JSON where there is none.
type Number float64

// None is no number.
func None() Number { return Number(math.NaN()) }

// Is reports whether there is one.
func (n Number) Is() bool { return !math.IsNaN(float64(n)) && !math.IsInf(float64(n), 0) }

// MarshalJSON returns the number or null.
func (n Number) MarshalJSON() ([]byte, error) {
	if !n.Is() {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON takes null as no number.
func (n *Number) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*n = None()
		return nil
	}
	return json.Unmarshal(text, (*float64)(n))
}

// Floats returns numbers as they are to be reckoned with.
func Floats(all []Number) []float64 {
	x := make([]float64, len(all))
	for i, n := range all {
		x[i] = float64(n)
	}
	return x
}
