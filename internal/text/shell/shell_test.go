package shell

import (
	"os/exec"
	"strings"
	"testing"
)

// TestJoin: a shell gets the words as they are.
func TestJoin(t *testing.T) {
	words := []string{"", "it's", "'", `\`, "$HOME", "a b", "*", "line\nline", "`id`", "!"}
	out, err := exec.Command("/bin/sh", "-c", `printf '%s\0' `+Join(words)).Output()
	if err != nil || string(out) != strings.Join(words, "\x00")+"\x00" {
		t.Errorf("%v: %q", err, out)
	}
}
