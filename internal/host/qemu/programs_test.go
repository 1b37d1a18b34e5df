package qemu

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/observe"
	"orrery/internal/problem"
)

// program writes a program into a directory that becomes the whole PATH.
func program(t *testing.T, name, script string) string {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	return path
}

// TestVersion checks the different version texts of QEMU, its virtiofsd in C and the virtiofsd in
// Rust.
func TestVersion(t *testing.T) {
	for said, want := range map[string]string{
		"QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)": "7.2.22",
		"virtiofsd version 7.2.22 (Debian 1:7.2+dfsg-7)":              "7.2.22",
		"virtiofsd 1.13.2":         "1.13.2",
		"virtiofsd backend 1.10.1": "1.10.1",
		"hello":                    "",
	} {
		path := program(t, "qemu-system-x86_64", "echo '"+said+"'\n")
		got, err := Version(context.Background(), path)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q is version %q, %v", said, got, err)
		}
	}
	path := program(t, "qemu-system-x86_64", "exit 1\n")
	if _, err := Version(context.Background(), path); problem.ExitCode(err) != int(problem.Unable) {
		t.Error(err)
	}
}

// TestVersions checks that a program is asked once, and again only after it was replaced.
func TestVersions(t *testing.T) {
	asked := filepath.Join(t.TempDir(), "asked")
	say := func(version string) string {
		return "echo >>" + asked + "; echo QEMU emulator version " + version + "\n"
	}
	path := program(t, "qemu-system-x86_64", say("7.2.22"))
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/bin:/bin")
	v := Versions{File: filepath.Join(t.TempDir(), "run", "versions.json")}
	times := func() int {
		text, _ := os.ReadFile(asked)
		return len(text)
	}
	for range 3 {
		if version, err := v.Of(t.Context(), path); version != "7.2.22" || err != nil {
			t.Fatal(version, err)
		}
	}
	if n := times(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	if err := os.WriteFile(path+".new", []byte("#!/bin/sh\n"+say("5.2.0")), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := v.CheckRequirements(t.Context()); problem.ExitCode(err) != int(problem.Unable) ||
			!strings.Contains(err.Error(), "QEMU 5.2.0 is older than 6.2 (install a newer one") {
			t.Errorf("of another program: %v", err)
		}
	}
	if n := times(); n != 2 {
		t.Errorf("it was asked %d times", n)
	}
	if err := os.WriteFile(v.File, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if version, err := v.Of(t.Context(), path); version != "5.2.0" || err != nil || times() != 3 {
		t.Errorf("with a damaged record: %q, %v, asked %d times", version, err, times())
	}
}

// TestModels checks that the names of models are read from the output of QEMU 7.2 and later. QEMU
// is asked once.
func TestModels(t *testing.T) {
	for said, want := range map[string]string{
		"Available CPUs:\nx86 486                   (alias configured by machine type)\nx86 Broadwell-v1          Intel Core Processor (Broadwell)\nx86 host     only\n\nRecognized CPUID flags:\n  3dnow abm\n": "486 Broadwell-v1 host",
		"Available CPUs:\n  486                   (alias configured by machine type)\n  max                   Enables all\n\nRecognized CPUID flags:\n  3dnow abm\n":                                             "486 max",
		"": "",
	} {
		asked := filepath.Join(t.TempDir(), "asked")
		path := program(t, "qemu-system-x86_64", "echo >>"+asked+"\n")
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho >>"+asked+"\nprintf '%s' '"+said+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		v := Versions{File: filepath.Join(t.TempDir(), "programs.json")}
		for range 2 {
			if got := strings.Join(v.Models(t.Context()), " "); got != want {
				t.Errorf("%q has %q", said, got)
			}
		}
		if text, err := os.ReadFile(asked); want != "" && string(text) != "\n" {
			t.Errorf("it was asked %d times: %v", len(text), err)
		}
	}
}

// TestNested checks the flag by which a processor reports a virtual machine.
func TestNested(t *testing.T) {
	for text, want := range map[string]bool{
		"processor\t: 0\nflags\t\t: fpu svm hypervisor npt\n": true, "flags\t\t: fpu svm\n\nflags\t: hypervisor\n": false,
		"bugs : hypervisor\n": false, "": false,
	} {
		path := filepath.Join(t.TempDir(), "cpuinfo")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if nested(path) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
	if nested("/not/there") {
		t.Error("what cannot be read says so")
	}
}

func TestTooOld(t *testing.T) {
	for version, old := range map[string]bool{"5.2.0": true, "6.1.99": true, "6.2": false, "6.2.0": false, "6": true,
		"7.2.22": false, "10.0.2": false} {
		if err := CheckVersion(version); (err != nil) != old || err != nil && problem.ExitCode(err) != int(problem.Unable) {
			t.Errorf("%s: %v", version, err)
		}
	}
}

// TestLacks checks that a missing program is reported with its cure.
func TestLacks(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := System()
	if problem.ExitCode(err) != int(problem.Unable) || !strings.Contains(err.Error(), "apt-get install qemu-system-x86") {
		t.Error(err)
	}
	if missing := CheckRequirements(); missing == nil || missing.Error() != err.Error() {
		t.Errorf("%v, not %v", missing, err)
	}
	path := program(t, "qemu-system-x86_64", "")
	if found, err := System(); found != path || err != nil {
		t.Error(found, err)
	}
	if missing := CheckRequirements(); missing == nil || strings.Contains(missing.Error(), "QEMU") {
		// orrery-guest is not beside a test binary.
		t.Error(missing)
	}
}

// TestAccel checks that a machine either runs guests or reports why not, within at most one second
// for each mode of the trial.
func TestAccel(t *testing.T) {
	accel, why := Accel()
	if accel != observe.KVM && accel != observe.TCG || (accel == observe.TCG) != (why != nil) {
		t.Errorf("%q, %v", accel, why)
	}
}
