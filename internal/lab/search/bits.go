package search

import (
	"fmt"
	"math"
)

// bits formats a rate.
func bits(rate float64) string {
	if math.IsInf(rate, 1) {
		return "full speed"
	}
	for _, unit := range []struct {
		name string
		size float64
	}{{"Gbit/s", 1e9}, {"Mbit/s", 1e6}, {"kbit/s", 1e3}} {
		if rate >= unit.size {
			return fmt.Sprintf("%.3g %s", rate/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%.3g bit/s", rate)
}
