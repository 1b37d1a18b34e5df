package test

import (
	"slices"
	"strings"
	"testing"
)

func TestHPC(t *testing.T) {
	t.Parallel()
	s := newExample(t, "hpc", "it-hpc", "10.8.70.", "10.99.70.")
	s.do("up")
	out := s.on("node0", "runuser", "-u", "hpc", "--", "/bin/sh", "-c", "cd; mpirun -n 8 hostname")
	names := strings.Fields(out)
	slices.Sort(names)
	if want := strings.Fields("node0 node1 node2 node3 node4 node5 node6 node7"); !slices.Equal(names, want) {
		t.Errorf("mpirun -n 8 hostname: %v", names)
	}
	s.run("exec", "node3", "--user", "hpc", "--", "ssh", "-o", "BatchMode=yes", "node5.it-hpc", "hostname").
		want(0, "node5")
}
