package cgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/test/need"
)

// TestMain makes this program leave its control group in a child process.
func TestMain(m *testing.M) {
	if name := os.Getenv("ORRERY_CGROUP_TEST"); name != "" {
		if err := Named(name).Enter(); err != nil {
			panic(err)
		}
		text, _ := os.ReadFile("/proc/self/cgroup")
		fmt.Print(string(text))
		os.Stdout.Close()
		time.Sleep(time.Minute)
	}
	os.Exit(m.Run())
}

// TestEnter checks that a process leaves its original groups in every hierarchy, so that freezing
// those does not freeze it.
func TestEnter(t *testing.T) {
	need.Integration(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "ORRERY_CGROUP_TEST=it-cgroup-enter")
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		Remove(Named("it-cgroup-enter"))
	})
	var text strings.Builder
	for piece := make([]byte, 4096); ; {
		n, err := out.Read(piece)
		if text.Write(piece[:n]); err != nil {
			break
		}
	}
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	for _, line := range lines {
		if !strings.HasSuffix(line, ":/it-cgroup-enter") {
			t.Errorf("it is in %s", line)
		}
	}
	v1, v2 := hostMount.hierarchiesByVersion()
	if v2 != "" {
		v1 = append(v1, v2)
	}
	if len(v1) > len(lines) {
		t.Errorf("of the hierarchies %v it is in %d", v1, len(lines))
	}
	for _, root := range v1 {
		procs, err := os.ReadFile(filepath.Join(root, "it-cgroup-enter/cgroup.procs"))
		if err != nil || strings.TrimSpace(string(procs)) != fmt.Sprint(cmd.Process.Pid) {
			t.Errorf("in %s are %q: %v", root, procs, err)
		}
	}
}
