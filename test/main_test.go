// Package test runs the program itself on this machine: real sites, real containers, real networks.
package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/rehearsal"
	"orrery/test/need"
)

// dirs are directories only for these tests. Their layers stay for the next run.
var dirs = host.Dirs{State: need.State(), Run: need.Run()}

// program is the binary under test.
var program string

func TestMain(m *testing.M) {
	rehearsal.RunRole()
	if !need.Asked() {
		os.Exit(m.Run())
	}
	status, err := alone(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "test:", err)
		status = 1
	}
	os.Exit(status)
}

// alone runs the tests while no other run of them is active on this machine.
func alone(m *testing.M) (int, error) {
	if err := need.TakeTurn(); err != nil {
		return 0, err
	}
	unix.Umask(0o077) // nodes must be able to start, whatever root's umask is
	dir, err := os.MkdirTemp("", "orrery-test-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "orrery")
	build := exec.Command("go", "build", "-trimpath", "-o", dir+"/", "orrery/cmd/orrery", "orrery/cmd/orrery-lab")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("go build: %w\n%s", err, out)
	}
	for _, beside := range []string{"orrery-micro", "orrery-guest"} { // make test builds them
		built, err := filepath.Abs("../bin/" + beside)
		if err == nil {
			err = os.Symlink(built, filepath.Join(dir, beside))
		}
		if err != nil {
			return 0, err
		}
	}
	if err := reap(); err != nil {
		return 0, fmt.Errorf("what an earlier run left cannot be removed: %w", err)
	}
	status := m.Run()
	return status, reap()
}

// reap destroys and forgets every site that these tests have made, so that nothing stays of a
// killed run.
func reap() error {
	for _, path := range glob(filepath.Join(homes, "*")) {
		if name := filepath.Base(path); !strings.HasSuffix(name, ".img") {
			if err := dropHome(home(name)); err != nil {
				return err
			}
		}
	}
	if err := forgetAll(dirs); err != nil {
		return err
	}
	_ = unix.Unmount(filepath.Join(dirs.State, "small"), unix.MNT_DETACH) // of TestFullDisk
	// The program mounts a tmpfs there if nothing is mounted.
	_ = unix.Unmount(dirs.Run, unix.MNT_DETACH)
	return os.RemoveAll(dirs.Run)
}

func forgetAll(dirs host.Dirs) error {
	for _, site := range glob(dirs.Site("*")) {
		if err := forget(dirs, filepath.Base(site)); err != nil {
			return err
		}
	}
	return nil
}

// forget destroys a site, whatever its site file was, and removes its state except layers.
func forget(dirs host.Dirs, name string) error {
	if site, twin, ok := strings.Cut(name, "."); ok {
		return forgetTwin(dirs, name, site, twin)
	}
	dir, err := os.MkdirTemp("", "orrery-forget-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "site.toml"), []byte("site.name = \""+name+"\"\n"), 0o644); err != nil {
		return err
	}
	for tries := 30; ; tries-- {
		cmd := exec.Command(program, "-C", dir, "down", "--volumes", "--yes-volumes", name)
		cmd.Env = environment(dirs)
		out, err := cmd.CombinedOutput()
		if err == nil {
			return os.RemoveAll(dirs.Site(name))
		}
		if cmd.ProcessState.ExitCode() != 5 || tries == 0 { // another process is just ending a trial or a twin
			return fmt.Errorf("down of site %s: %w\n%s", name, err, out)
		}
		time.Sleep(time.Second)
	}
}

// forgetTwin destroys a twin, even if the site directory from which it was made is gone.
func forgetTwin(dirs host.Dirs, key, site, twin string) error {
	var r struct{ Dir string }
	text, err := os.ReadFile(filepath.Join(dirs.Site(key), "twin.json"))
	if err := errors.Join(err, json.Unmarshal(text, &r)); err != nil {
		return os.RemoveAll(dirs.Site(key)) // nothing was made of it
	}
	cmd := exec.Command(program, "--force", "-C", r.Dir, "twin", "destroy", twin)
	cmd.Env = environment(dirs)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("twin destroy of %s of site %s: %w\n%s", twin, site, err, out)
	}
	return nil
}

func environment(dirs host.Dirs) []string {
	return append(os.Environ(), "ORRERY_STATE="+dirs.State, "ORRERY_RUN="+dirs.Run)
}

// begin starts a process that the kernel kills when this one ends for any reason.
func begin(cmd *exec.Cmd) (wait func() error, err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.SysProcAttr.Setpgid = true
	began, ended := make(chan error), make(chan error, 1)
	go func() {
		// The signal is sent when the thread that started the process ends, so the thread must not
		// end before.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		began <- err
		if err == nil {
			ended <- cmd.Wait()
		}
	}()
	return func() error { return <-ended }, <-began
}
