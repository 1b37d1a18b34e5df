package xl

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/problem"
)

// fake installs a script as xl for this test.
func fake(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "xl"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

// TestLacks checks that a missing requirement of Xen is reported with its cure.
func TestLacks(t *testing.T) {
	root := t.TempDir()
	put := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lacking := func(want string) {
		t.Helper()
		err := checkRequirements(root)
		var p *problem.Problem
		if !errors.As(err, &p) || p.Kind != problem.Unable || p.Cure == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	t.Setenv("PATH", t.TempDir())
	lacking("does not run on Xen")
	put("sys/hypervisor/type", "kvm\n")
	lacking("does not run on Xen")
	put("sys/hypervisor/type", "xen\n")
	lacking("not its Dom0")
	put("proc/xen/capabilities", "\n")
	lacking("not its Dom0")
	put("proc/xen/capabilities", "control_d\n")
	lacking("xl, is not installed")
}

// TestAsk checks that xl gets its arguments, and that its error output becomes one line, without
// source positions.
func TestAsk(t *testing.T) {
	fake(t, `echo "$@"`)
	out, err := Output(t.Context(), "list", "a b")
	if string(out) != "list a b\n" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	fake(t, `echo "libxl: error: libxl_dm.c:2938:device_model_spawn_outcome: Domain 3:domain 3 device model: spawn failed (rc=-3)" >&2; printf 'cannot \033[2J\n' >&2; exit 3`)
	err = Run(t.Context(), "create", "x")
	if problem.ExitCode(err) != int(problem.Failed) || !strings.Contains(err.Error(), "xl create failed") ||
		!strings.Contains(err.Error(), "domain 3 device model: spawn failed (rc=-3); cannot") ||
		strings.Contains(err.Error(), "libxl_dm.c") || strings.Contains(err.Error(), "\033") {
		t.Errorf("%q", err)
	}
	if IsNotFound(err) {
		t.Error("a domain that is there is absent")
	}
	fake(t, `echo "x is an invalid domain identifier (rc=-6)" >&2; exit 1`)
	if err := Run(t.Context(), "destroy", "x"); !IsNotFound(err) {
		t.Errorf("%v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := Run(t.Context(), "list"); problem.ExitCode(err) != int(problem.Unable) {
		t.Errorf("%v", err)
	}
}

// TestAskTooMuch checks that the output of xl is limited.
func TestAskTooMuch(t *testing.T) {
	fake(t, `head -c 20000000 /dev/zero`)
	if _, err := Output(t.Context(), "list"); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("%v", err)
	}
}

// TestTerminal checks that the path of a console comes from xenstore, by the number of the domain.
// Any other value than a path of a terminal is an error.
func TestTerminal(t *testing.T) {
	fake(t, `[ "$*" = "domid x" ] && echo 7`)
	dir, _, _ := strings.Cut(os.Getenv("PATH"), ":")
	says := func(script string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "xenstore-read"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	says(`[ "$*" = /local/domain/7/console/tty ] && echo /dev/pts/3`)
	if path, err := ConsolePath(t.Context(), "x"); path != "/dev/pts/3" || err != nil {
		t.Errorf("%q, %v", path, err)
	}
	for _, script := range []string{"echo /dev/pts/../sda", "echo", "echo /dev/pts/1; echo x", "exit 1"} {
		says(script)
		if path, err := ConsolePath(t.Context(), "x"); err == nil {
			t.Errorf("%s: %q", script, path)
		}
	}
	fake(t, "echo x")
	if path, err := ConsolePath(t.Context(), "x"); err == nil {
		t.Errorf("a domain without a number: %q", path)
	}
}
