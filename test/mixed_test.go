package test

import (
	"os"
	"strings"
	"testing"
)

// TestMixed: a container and a virtual machine with the same role are side by side on a bridge, and reach one another. Each has its kernel.
func TestMixed(t *testing.T) {
	t.Parallel()
	s := newExample(t, "mixed", "it-mixed", "10.8.75.", "10.99.75.")
	s.do("up")
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]string{}
	for asked, by := range map[string]string{"machine": "container", "container": "machine"} {
		said := strings.Fields(s.on(by, "/bin/bash", "-c", "cat < /dev/tcp/"+asked+"/7000"))
		if len(said) != 2 || said[0] != asked {
			t.Fatalf("%s says to %s: %q", asked, by, said)
		}
		of[asked] = said[1]
	}
	if host := strings.TrimSpace(string(release)); of["container"] != host || of["machine"] == host {
		t.Errorf("on a host with kernel %s they run on %v", host, of)
	}
	s.run("plan").want(0, "nothing to do")
	s.run("status").want(0, "machine")
}
