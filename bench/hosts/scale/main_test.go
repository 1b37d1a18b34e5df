package main

import "testing"

// TestShapes: sites of all shapes are planned, and when all is there, nothing is to be done.
func TestShapes(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			if err := one(12, shape(12)); err != nil {
				t.Error(err)
			}
		})
	}
}
