package host

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestOwnSurroundings checks that this program and its children inherit nothing that a caller has
// set.
//
// Promise (Members): A member's environment has no effect, and the journal has the member's name.
// With test.TestMember.
func TestOwnSurroundings(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Dir = t.TempDir()
	cmd.Env = []string{
		"ORRERY_HOST_TEST=surroundings", "PATH=/home/evil", "HOME=/home/evil", "ORRERY_STATE=/home/evil",
		"PIP_CONFIG_FILE=/home/evil/pip",
		"http_proxy=http://evil", "SUDO_USER=root", "SUDO_UID=1001", "SUDO_GID=1001; x", "TERM=xterm", "LANG=../evil",
		"TZ=:/home/evil/tz", "PAGER=evil",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := strings.Split(strings.TrimSpace(string(out)), "\n")
	want := []string{"HOME=/root", "LANG=C.UTF-8", "PATH=" + Path, "PWD=/", "SUDO_UID=1001", "TERM=xterm"}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("a program finds %q, want %q", got, want)
	}
}

func printSurroundings() {
	if err := DropInheritedState(); err != nil {
		panic(err)
	}
	os.Stdout.WriteString(strings.Join(os.Environ(), "\n") + "\n")
	here, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	os.Stdout.WriteString("PWD=" + here + "\n")
}
