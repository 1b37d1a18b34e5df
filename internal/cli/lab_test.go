package cli

import (
	"strings"
	"testing"

	"orrery/internal/cli/labverb"
)

// TestIsForLab: without a lab, orrery finds the command lines that orrery-lab answers.
func TestIsForLab(t *testing.T) {
	root := Verbs(nil)
	for line, want := range map[string]bool{
		"lab": true, "lab run": true, "lab run --until 5%": true, "lab --nosuch": true, "lab nosuch": true,
		"-C lab lab ls": true, "--site=x --json lab ls": true, "--twin dev lab run": true, "help lab": true,
		"help lab run": true, "__complete lab r": true, "__completeNoDesc -C x lab run ": true,
		"spead send 10.0.0.1:7148": true,
		"":                         false, "help": false, "status": false, "-C lab status": false, "__complete": false,
		"exec web0 -- lab run": false, "nosuch lab": false, "--lab": false, "__complete status lab": false,
	} {
		if got := isForLab(root, strings.Fields(line)); got != want {
			t.Errorf("orrery %s: for orrery-lab: %t", line, got)
		}
	}
}

// TestLabVerbs: orrery lists the verbs of the lab in the words of orrery-lab.
func TestLabVerbs(t *testing.T) {
	real := Verbs(labverb.Lab{})
	for _, c := range Verbs(nil).Commands() {
		other, _, err := real.Find([]string{c.Name()})
		if err != nil || other.Short != c.Short || other.Hidden != c.Hidden || other.GroupID != c.GroupID {
			t.Errorf("orrery %s is %q, and %q in orrery-lab: %v", c.Name(), c.Short, other.Short, err)
		}
	}
}
