package lxc

import (
	"testing"
	"time"
)

// TestSettled: an interface that comes a moment late, as while a node reboots, is not reported
// missing. One that never comes is missing, and only the named interfaces are waited for.
func TestSettled(t *testing.T) {
	looks := 0
	late := func() map[string]bool {
		looks++
		return map[string]bool{"lo": true, "eth0": looks > 3}
	}
	if !awaitInterfaces([]string{"eth0"}, late)["eth0"] {
		t.Error("an interface that came late is called missing")
	}
	begun := time.Now()
	if awaitInterfaces([]string{"eth1"}, late)["eth1"] || time.Since(begun) > 5*time.Second {
		t.Errorf("an interface that does not come is there, or was waited for %v", time.Since(begun))
	}
	looks = 10
	if awaitInterfaces([]string{"eth0"}, late); looks != 11 {
		t.Errorf("it was looked for %d times", looks-10)
	}
}
