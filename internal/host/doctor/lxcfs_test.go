package doctor

import "testing"

// TestLXCFS: doctor says whether containers see their own memory, and how they would.
func TestLXCFS(t *testing.T) {
	for value, files := range map[string]map[string]string{
		"on:":           {"var/lib/lxcfs/proc/meminfo": ""},
		"off:":          {"usr/bin/lxcfs": "", "var/lib/lxcfs/other": ""},
		"ended:":        {"var/lib/lxcfs/proc": "not a directory"},
		"not installed": nil,
	} {
		expectFact(t, lxcfs(fakeMachine(t, files))[0], value == "on:", value)
	}
}
