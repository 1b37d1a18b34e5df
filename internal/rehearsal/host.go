package rehearsal

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/host"
)

// A Host is one of several hosts on this machine.
type Host struct {
	of     *Hosts
	number int
}

// At returns the host with a number.
func (h *Hosts) At(number int) Host { return Host{h, number} }

// Name returns the host name, which the other hosts also use.
func (h Host) Name() string { return h.of.places[h.number-1].Name }

// Address returns the host's address on the switch.
func (h Host) Address() string { return h.of.places[h.number-1].Addresses[0].Addr().String() }

func (h Host) call(verb string, argument any) error {
	if err := h.of.calls.call(verb, argument, nil); err != nil {
		return fmt.Errorf("%s of host %s: %w", strings.ToLower(verb), h.Name(), err)
	}
	return nil
}

// commandEnv is the environment of commands on hosts.
var commandEnv = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
	"LANG=C.UTF-8"}

// Command returns a command that root runs on the host. It does not use SSH, so it works even while
// the host is cut off.
func (h Host) Command(args ...string) *exec.Cmd {
	pid, err := h.Init()
	if err != nil {
		cmd := reexec(roleVisitor)
		cmd.Err = err
		return cmd
	}
	cmd := reexec(roleVisitor, append([]string{filepath.Join(groupOf(h.of.set.name), portName(h.number)),
		strconv.Itoa(pid)},
		args...)...)
	cmd.Env = append(slices.Clone(commandEnv), "TERM="+os.Getenv("TERM"))
	return cmd
}

// Run runs a command on the host, as a host.Runner does.
func (h Host) Run(ctx context.Context, c host.Command) error {
	as := h.Command(c.Args...)
	if as.Err != nil {
		return as.Err
	}
	return host.Exec(ctx, "host "+h.Name(), append([]string{as.Path}, as.Args[1:]...), c,
		func(cmd *exec.Cmd) { cmd.Args, cmd.Env = as.Args, append(as.Env, c.Env...) })
}

// Init returns the PID of the host's first process, as this machine numbers it. It works even while
// the host is paused, for tests that look at its namespaces.
func (h Host) Init() (pid int, err error) {
	if err := h.of.calls.call("Init", h.number, &pid); err != nil {
		return 0, fmt.Errorf("host %s: %w", h.Name(), err)
	}
	return pid, nil
}

// Output runs a command on the host and returns its trimmed output.
func (h Host) Output(args ...string) (string, error) {
	cmd := h.Command(args...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("host %s: %s: %w\n%s%s", h.Name(), strings.Join(args, " "), err, out, errs.Bytes())
	}
	return strings.TrimSpace(string(out)), err
}

// A Direction is a direction on the link between a host and the switch.
type Direction string

// The ways that can be cut.
const (
	Both Direction = "both" // the host sees that its link is down
	To   Direction = "to"   // packets to the host are lost, without any notice
	From Direction = "from" // packets from the host are lost, without any notice
)

// Disconnect cuts the host off. It restores a direction that was cut before.
func (h Host) Disconnect(way Direction) error { return h.call("Cut", LinkState{h.number, way}) }

// Reconnect restores the host's link.
func (h Host) Reconnect() error { return h.call("Cut", LinkState{h.number, ""}) }

// SetMTU makes the switch drop larger packets to and from the host without any notice. An MTU of
// 1500 ends that.
func (h Host) SetMTU(mtu int) error { return h.call("Narrow", Link{h.number, mtu}) }

// Kill kills all processes of the host at once, as if it had lost its power. It keeps the disk.
func (h Host) Kill() error { return h.call("Kill", h.number) }

// Boot starts the host again after Kill.
func (h Host) Boot() error { return h.call("Boot", h.number) }

// Pause freezes all processes of the host until Resume.
func (h Host) Pause() error { return h.call("Freeze", FreezeRequest{h.number, true}) }

// Resume thaws the host.
func (h Host) Resume() error { return h.call("Freeze", FreezeRequest{h.number, false}) }

// SetDiskRate limits the rate of reads and writes on the host's disk, in bytes per second, or removes
// the limit if the rate is 0. On cgroup v1, it does not limit nodes, and limits only writes that a
// process waits for (fsync).
func (h Host) SetDiskRate(rate int64) error { return h.call("Slow", DiskRate{h.number, rate}) }

// AddUser adds a user who logs in with the same key as root and, if sudo is true, may run anything
// by sudo. The user exists until the host ends.
func (h Host) AddUser(name string, sudo bool) error {
	_, err := h.Output("/bin/sh", "-c", addUser, "sh", name, strconv.FormatBool(sudo))
	return err
}

// addUser is a script that adds a user with root's keys. If the second argument is not "false", the
// user may run anything by sudo.
const addUser = `set -e
id "$1" >/dev/null 2>&1 || useradd -m -s /bin/bash "$1"; usermod -p '*' "$1"
cp -r /root/.ssh "/home/$1/"; chown -R "$1:" "/home/$1/.ssh"
rm -f "/etc/sudoers.d/$1"
[ "$2" = false ] || { echo "$1 ALL=(ALL) NOPASSWD: ALL" >"/etc/sudoers.d/$1"; chmod 440 "/etc/sudoers.d/$1"; }`

// SetEnv sets variables for all that root runs on the host by SSH from now on. A host cannot have
// its own calendar time: a time namespace only has its own monotonic clock and its own clock since
// boot. Instead, a program can read from a variable how far its clock is ahead.
func (h Host) SetEnv(variables ...string) error {
	cmd := h.Command("/bin/sh", "-c", "cat >/root/.ssh/environment")
	cmd.Stdin = strings.NewReader(strings.Join(variables, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("host %s: %w\n%s", h.Name(), err, out)
	}
	return nil
}
