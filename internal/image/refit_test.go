package image

import (
	"os/exec"
	"testing"
)

func TestRefit(t *testing.T) {
	s := testState(t)
	base := testBase(t, s)
	tree := s.Tree(base.Digest)
	exec.Command("sh", "-c", "rm -rf "+tree+"/etc/systemd/system/*.d "+tree+"/etc/systemd/system/*.timer").Run()
	if err := fit(tree); err != nil {
		t.Fatal(err)
	}
}
