package main

import "testing"

// TestShapes: sites of all shapes can be planned, and a site that is completely up needs no further
// steps.
func TestShapes(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			if err := one(12, shape(12)); err != nil {
				t.Error(err)
			}
		})
	}
}
