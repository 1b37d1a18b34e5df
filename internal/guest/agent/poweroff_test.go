package agent

import "testing"

// TestWaits checks which init can receive the signal. For any other init, the signal would be lost.
func TestWaits(t *testing.T) {
	for status, want := range map[string]bool{
		"Name:\tsystemd\nSigBlk:\t7fe3c0fe28014a03\nSigIgn:\t0000000000001000\n": true,
		"Name:\tinit\nSigBlk:\t0000000000000000\nSigCgt:\tffffffffffffffff\n":    false, // orrery-guest, in Go
		"Name:\tinit\nSigBlk:\t0000001fc0000000\n":                               false,
		"Name:\tinit\nSigBlk:\t0000002000000000\n":                               true,
		"Name:\tinit\nSigBlk:\tnothing\n":                                        false,
		"":                                                                       false,
	} {
		if got := handlesSignal(status, powerOff); got != want {
			t.Errorf("%q: %v", status, got)
		}
	}
}
