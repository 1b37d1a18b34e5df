package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// labTwoStateDirectories: a lab that starts while another state directory has one is refused with a
// message that names possible cures, both while the other runs and after it was killed. Other users
// of the host cannot read the measuring programs in the meantime.
func labTwoStateDirectories(t *testing.T) {
	s := newLab(t)
	s.write("lab/planted.toml", plantedLab)
	file, bundle := filepath.Join(s.dir, "lab/planted.toml"), filepath.Join(s.dir, "bundle")
	other := s.at(newBareHome(t, "labstates"))
	cmd, _, errs := s.command("lab", "run", file, "--to", bundle)
	wait, err := begin(cmd)
	if err != nil {
		t.Fatal(err)
	}
	s.eventually(func() error {
		if s.trials(bundle) > 0 {
			return nil
		}
		return os.ErrNotExist
	})
	wantClosed(t, s.closedTo(nobody, 5, filepath.Join(s.dirs.State, "lab")))
	refused := func(status int, says ...string) {
		t.Helper()
		r := other.run("lab", "run", file).want(status, says...)
		if n := strings.Count(r.out+r.errs, "orrery: "); n != 1 {
			t.Errorf("it is said %d times: %s%s", n, r.out, r.errs)
		}
	}
	refused(5, s.dirs.State, "another lab is measuring on this host", "wait for it")
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = wait()
	refused(4, s.dirs.State, "of a lab that was killed", "ORRERY_STATE="+s.dirs.State+" orrery -C BUNDLE/site down")
	if all := glob(filepath.Join(other.dirs.State, "lab", "*")); len(all) > 1 { // one is the lock
		t.Errorf("it left %v", all)
	}
	s.run("-C", filepath.Join(bundle, "site"), "down").want(0)
	if t.Failed() {
		t.Log(errs)
	}
}

// labProgramMissing: a program that a test needs and that is missing beside orrery is reported
// before anything is made.
func labProgramMissing(t *testing.T) {
	s := newLab(t)
	s.write("lab/micro.toml", "[setting.veth]\n[test.x]\nkind = \"micro\"\n")
	alone := t.TempDir()
	must(t, os.Link(program, filepath.Join(alone, "orrery")))
	for _, missing := range []string{"orrery-lab", "orrery-micro"} {
		cmd := exec.Command(filepath.Join(alone, "orrery"), "lab", "run", filepath.Join(s.dir, "lab/micro.toml"), "--to",
			filepath.Join(s.dir, "bundle"))
		cmd.Env = environment(s.dirs)
		out, _ := cmd.CombinedOutput()
		if status := cmd.ProcessState.ExitCode(); status != 4 || !strings.Contains(string(out), missing+" is missing") ||
			strings.Contains(string(out), "creating network") || len(glob(filepath.Join(s.dir, "bundle"))) > 0 {
			t.Errorf("without %s: status %d: %s", missing, status, out)
		}
		must(t, os.Link(filepath.Join(filepath.Dir(program), missing), filepath.Join(alone, missing)))
	}
}
