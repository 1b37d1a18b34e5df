// Package outfit installs the packages that nodes need on a machine.
//
// It uses the package manager of the machine's distribution.
//
// It is a package of its own because it knows the packages of a host, which control/here must not
// know.
package outfit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/text/humanize"
	"orrery/internal/text/sanitize"
)

// A requirement is a program, with the packages that contain it on Debian and Ubuntu. The first one that
// exists is installed.
type requirement struct {
	program string
	in      []string
	engine  string // engine that needs it, or "" if all nodes do
	confine bool   // only where the kernel has AppArmor
}

// requirements are the programs from the packages of `make packages`, and of `make vm-packages` for
// virtual machines, as far as a remote host needs them.
var requirements = []requirement{
	{program: "lxc-start", in: []string{"lxc"}},
	{program: "apparmor_parser", in: []string{"apparmor"}, confine: true},
	{program: "mmdebstrap", in: []string{"mmdebstrap"}},
	{program: "nft", in: []string{"nftables"}},
	{program: "ip", in: []string{"iproute2"}},
	{program: "zstd", in: []string{"zstd"}},
	{program: "xz", in: []string{"xz-utils"}},
	{program: "update-ca-certificates", in: []string{"ca-certificates"}},
	{program: "apt-ftparchive", in: []string{"apt-utils"}},
	{program: "gpg", in: []string{"gpg"}},
	{program: "gpg-agent", in: []string{"gpg-agent"}},
	{program: "rsync", in: []string{"rsync"}},
	{program: "qemu-system-x86_64", in: []string{"qemu-system-x86"}, engine: "kvm"},
	{program: "qemu-img", in: []string{"qemu-utils"}, engine: "kvm"},
	{program: "/usr/libexec/virtiofsd", in: []string{"virtiofsd", "qemu-system-common"}, engine: "kvm"},
}

// A Machine is the machine that packages are installed on: this one, except in tests.
type Machine struct {
	Has func(program string) bool
	// Confines reports whether the kernel has AppArmor. If so, LXC starts no container without the
	// program that loads profiles.
	Confines func() bool
	// Run runs a program to its end, and calls line with each line that it prints.
	Run func(ctx context.Context, line func(string), args ...string) error
	// Quiet prevents packages from starting their services, until end is called.
	Quiet func() (end func(), err error)
}

// Local is the machine on which this program runs.
var Local = Machine{Has: has, Confines: host.HasAppArmor, Run: run,
	Quiet: func() (func(), error) { return suppressServices(policyFile) }}

func has(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// Missing returns the programs that nodes of the given engines need and the machine does not have.
func (m Machine) Missing(engines []string) (all []string) {
	for _, n := range m.missing(engines) {
		all = append(all, n.program)
	}
	return all
}

func (m Machine) missing(engines []string) (all []requirement) {
	for _, n := range requirements {
		wanted := n.engine == "" || slices.Contains(engines, n.engine)
		if wanted && (!n.confine || m.Confines()) && !m.Has(n.program) {
			all = append(all, n)
		}
	}
	return all
}

// lockTimeout limits how long apt waits for another apt, such as that of a newly booted system.
const lockTimeout = 120 * time.Second

// Install installs the missing programs that nodes of the given engines need, and reports its steps
// to say. It returns the packages that it installed, or none if nothing was missing. It first
// finishes a dpkg run that was interrupted earlier.
func (m Machine) Install(ctx context.Context, engines []string, say func(string)) ([]string, error) {
	missing := m.missing(engines)
	if len(missing) == 0 {
		return nil, nil
	}
	if !m.Has("apt-get") || !m.Has("dpkg") {
		return nil, problem.New(problem.Unable, "%s are missing here, and there is no apt-get to install them",
			list(missing)).
			Try("install them with this system's package manager, and run the same command again; the packages of Debian and Ubuntu are %s",
				packagesOf(missing))
	}
	loud, err := m.Quiet()
	if err != nil {
		return nil, problem.New(problem.Failed, "packages could not be prevented from starting their services").Because(err)
	}
	defer loud()
	apt := func(what string, args ...string) error {
		say(what)
		line := func(text string) {
			if isProgressLine(text) {
				say(text)
			}
		}
		args = append([]string{"env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8", "NEEDRESTART_MODE=l"}, args...)
		return m.Run(ctx, line, args...)
	}
	if err := apt("finishing interrupted work of dpkg", "dpkg", "--configure", "-a", "--force-confold"); err != nil {
		return nil, aptError(ctx, "dpkg --configure -a", err)
	}
	wait := fmt.Sprintf("-oDPkg::Lock::Timeout=%d", int(lockTimeout.Seconds()))
	// Without this option, apt succeeds even if an archive cannot be reached.
	unreached := apt("updating the package lists", "apt-get", wait, "-oDpkg::Use-Pty=0",
		"-oAPT::Update::Error-Mode=any", "update")
	if unreached != nil && ctx.Err() == nil {
		say("not all archives could be reached: continuing with the known packages")
	}
	names, unknown := m.choosePackages(ctx, missing)
	if len(unknown) > 0 && ctx.Err() == nil {
		return nil, problem.New(problem.Unable, "apt knows no package %s here", humanize.List(unknown, 12)).
			Because(unreached).
			Try("check which archives /etc/apt/sources.list and sources.list.d name on that host, and that apt-get update works there; then run the same command again")
	}
	install := append([]string{"apt-get", wait, "-oDpkg::Use-Pty=0", "-oDpkg::Options::=--force-confold", "--yes",
		"--no-install-recommends", "install", "--"}, names...)
	if err := apt("installing "+strings.Join(names, ", "), install...); err != nil {
		return names, aptError(ctx, "apt-get install "+strings.Join(names, " "), err)
	}
	if left := m.missing(engines); len(left) > 0 {
		return names, problem.New(problem.Unable, "%s are installed, but %s are still missing", strings.Join(names, ", "),
			list(left)).Try("find out which packages of this system contain them")
	}
	return names, nil
}

// choosePackages returns the packages that contain the programs: for each program, the first package that
// apt knows. Programs without a known package are returned as unknown.
func (m Machine) choosePackages(ctx context.Context, missing []requirement) (names, unknown []string) {
	for _, n := range missing {
		i := slices.IndexFunc(n.in, func(name string) bool {
			return m.Run(ctx, func(string) {}, "apt-cache", "show", name) == nil
		})
		if i < 0 {
			unknown = append(unknown, n.in[0])
		} else if !slices.Contains(names, n.in[i]) {
			names = append(names, n.in[i])
		}
	}
	return names, unknown
}

func aptError(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return problem.New(problem.Interrupted, "%s was interrupted", what).
			Try("run the same command again: it continues where it stopped")
	}
	return problem.New(problem.Failed, "%s failed", what).Because(err).
		Try("run it by hand on that host, then run the same command again")
}

// isProgressLine reports whether a line of apt is shown while it runs.
func isProgressLine(line string) bool {
	return slices.ContainsFunc([]string{"Get:", "Err:", "E: ", "W: ", "Unpacking ", "Setting up "},
		func(begin string) bool { return strings.HasPrefix(line, begin) })
}

func list(all []requirement) string {
	var names []string
	for _, n := range all {
		names = append(names, n.program)
	}
	return humanize.List(names, 12)
}

func packagesOf(all []requirement) string {
	var names []string
	for _, n := range all {
		names = append(names, n.in[0])
	}
	return humanize.List(slices.Compact(names), 12)
}

// Limits for the output of a program that installs.
const (
	maxLineBytes = 4 << 10
	lastLines    = 5
)

// run runs a program. If ctx ends, it interrupts the program and waits: dpkg, if killed, would
// leave a package half installed.
func run(ctx context.Context, line func(string), args ...string) error {
	cmd := host.Program(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = time.Minute
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	var last []string
	read := make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewReaderSize(out, maxLineBytes)
		for {
			text, _, err := lines.ReadLine()
			if err != nil {
				return
			}
			said := sanitize.Line(string(text))
			line(said)
			last = append(last, said)
			last = last[max(0, len(last)-lastLines):]
		}
	}()
	err := cmd.Run()
	_ = in.Close()
	<-read
	if err != nil {
		return errors.New(strings.TrimSpace(err.Error() + ": " + strings.Join(last, " / ")))
	}
	return nil
}
