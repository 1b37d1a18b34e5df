// Package qemu finds the programs for virtual machines on this host, and tries KVM.
//
// The programs are QEMU, virtiofsd and the guest's program. The engine of virtual machines uses the
// package to find out what it can do, and the doctor to report what is missing.
package qemu

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/text/pattern"
)

// GuestName is the name of the program that is the init of a guest's initramfs, and its agent.
const GuestName = "orrery-guest"

// Accel returns what runs virtual machines here. If it is TCG, why is the reason why KVM does not
// work.
func Accel() (accel string, why error) {
	if why = ProbeKVM(); why != nil {
		return observe.TCG, why
	}
	return observe.KVM, nil
}

// Nested reports whether this machine is itself a virtual machine, according to its processor.
func Nested() bool { return nested("/proc/cpuinfo") }

func nested(cpuinfo string) bool {
	text, _ := os.ReadFile(cpuinfo)
	for line := range strings.Lines(string(text)) {
		if key, flags, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "flags" {
			return slices.Contains(strings.Fields(flags), "hypervisor")
		}
	}
	return false
}

// System returns the path of QEMU for guests of this machine's own architecture.
func System() (string, error) {
	if runtime.GOARCH != "amd64" {
		return "", problem.New(problem.Unable, "virtual machines need an amd64 host, but this one is %s",
			runtime.GOARCH).Try(`set engine = "lxc"`)
	}
	return findProgram("QEMU", "apt-get install qemu-system-x86", "qemu-system-x86_64")
}

// Virtiofsd returns the path of virtiofsd, which shares directories of the host with guests. It is
// usually not in the PATH.
func Virtiofsd() (string, error) {
	return findProgram("virtiofsd", "apt-get install virtiofsd, or on Debian 12 qemu-system-common",
		"virtiofsd", "/usr/libexec/virtiofsd", "/usr/lib/qemu/virtiofsd", "/usr/libexec/qemu/virtiofsd", "/usr/lib/virtiofsd")
}

// Guest returns the path of the program that runs in guests.
func Guest() (string, error) { return host.FindTool(GuestName) }

func findProgram(name, cure string, places ...string) (string, error) {
	for _, place := range places {
		if path, err := exec.LookPath(place); err == nil {
			return path, nil
		}
	}
	return "", problem.New(problem.Unable, "%s is not installed", name).Try("%s", cure)
}

// CheckRequirements returns an error that names the first requirement of virtual machines that this machine
// does not meet, or nil.
func CheckRequirements() error {
	for _, find := range []func() (string, error){System, Virtiofsd, Guest} {
		if _, err := find(); err != nil {
			return err
		}
	}
	return nil
}

// minVersion is the first version of QEMU that supports all options that Orrery uses: devices described
// in JSON.
const minVersion = "6.2"

var versionPattern = pattern.New(`[0-9]+(\.[0-9]+)+`)

// Version asks a program for its version and returns the numbers, with dots between them.
func Version(ctx context.Context, program string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := host.Program(ctx, program, "--version").Output()
	if err != nil {
		return "", problem.New(problem.Unable, "%s does not report its version", program).Because(err).
			Try("reinstall it")
	}
	if version := versionPattern().FindString(string(out)); version != "" {
		return version, nil
	}
	return "", problem.New(problem.Unable, "%s does not report its version", program).Try("reinstall it")
}

// CheckVersion returns an error if a version of QEMU is too old, or nil.
func CheckVersion(version string) error {
	if !olderThan(version, minVersion) {
		return nil
	}
	return problem.New(problem.Unable, "QEMU %s is older than %s", version, minVersion).
		Try("install a newer one: Debian 12 has 7.2")
}

// olderThan compares versions number by number.
func olderThan(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range bs {
		x, y := 0, 0
		if i < len(as) {
			x, _ = strconv.Atoi(as[i])
		}
		y, _ = strconv.Atoi(bs[i])
		if x != y {
			return x < y
		}
	}
	return false
}
