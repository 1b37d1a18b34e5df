package image

import (
	"bufio"
	"context"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/test/need"
)

// TestScratchNameTaken: a layer can be built while an unprivileged user of the host holds the name
// at which LXC's monitor would listen, and answers nothing there. The builder's commands run in the
// scratch.
func TestScratchNameTaken(t *testing.T) {
	s := realState(t)
	l := testLayer(t, s, realBase(t, s))
	cmd := exec.Command(need.Attack(t), "squat",
		filepath.Join(containerDir(s, l.Digest), containerName(s, l.Digest), "command"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the attacker is not ready: %q, %v", line, err)
	}
	err = s.BuildLayer(t.Context(), l, site.Mirror{}, func(ctx context.Context, in host.Runner) error {
		return in.Run(ctx, sh(`test "$(hostname)" = build && touch /opt/built`))
	}, sayTo(t))
	if err != nil {
		t.Fatal(err)
	}
	if kind := kindOf(filepath.Join(s.Tree(l.Digest), "opt/built")); kind != "file" {
		t.Errorf("what was built is %s", kind)
	}
}
