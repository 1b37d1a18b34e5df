package engine

import (
	"os"
	"testing"
)

// TestOpenView: OpenAsProcess opens the root of the node's process, and never that of a process that
// reused its id.
func TestOpenView(t *testing.T) {
	ref := Ref{Site: "karoo", ID: 101, Name: "db"}
	want := NotRunning(ref).Error()
	asked := 0
	for name, pid := range map[string]func() int{
		"none":  func() int { return 0 },
		"ended": func() int { asked++; return os.Getpid() * (2 - asked) },
	} {
		if root, err := OpenAsProcess(ref, pid, "/."); err == nil || err.Error() != want || root != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	root, err := OpenAsProcess(ref, os.Getpid, "/.")
	if err != nil {
		t.Fatal(err)
	}
	root.Close()
}
