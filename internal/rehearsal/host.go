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

// A Host is one of them.
type Host struct {
	of     *Hosts
	number int
}

// At returns one of the hosts.
func (h *Hosts) At(number int) Host { return Host{h, number} }

// Name returns its host name, by which the others know it, too.
func (h Host) Name() string { return h.of.places[h.number-1].Name }

// Address returns its address on the switch.
func (h Host) Address() string { return h.of.places[h.number-1].Addresses[0].Addr().String() }

func (h Host) call(verb string, argument any) error {
	if err := h.of.calls.Call("Keeper."+verb, argument, new(int)); err != nil {
		return fmt.Errorf("%s of host %s: %w", strings.ToLower(verb), h.Name(), err)
	}
	return nil
}

// environment is that of commands on hosts.
var environment = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
	"LANG=C.UTF-8"}

// Command returns a command that root runs there, not by SSH: it is for who looks on from outside,
// also while the host is cut off.
func (h Host) Command(args ...string) *exec.Cmd {
	pid, err := h.Init()
	if err != nil {
		cmd := again(asVisitor)
		cmd.Err = err
		return cmd
	}
	cmd := again(asVisitor, append([]string{filepath.Join(groupOf(h.of.set.name), seat(h.number)), strconv.Itoa(pid)},
		args...)...)
	cmd.Env = append(slices.Clone(environment), "TERM="+os.Getenv("TERM"))
	return cmd
}

// Run does so, as a place where commands run.
func (h Host) Run(ctx context.Context, c host.Command) error {
	as := h.Command(c.Args...)
	if as.Err != nil {
		return as.Err
	}
	return host.Exec(ctx, "host "+h.Name(), append([]string{as.Path}, as.Args[1:]...), c,
		func(cmd *exec.Cmd) { cmd.Args, cmd.Env = as.Args, append(as.Env, c.Env...) })
}

// Init returns the first process of the host, as this machine numbers it: for who looks at its
// namespaces, also while it stands still.
func (h Host) Init() (pid int, err error) {
	if err := h.of.calls.Call("Keeper.Init", h.number, &pid); err != nil {
		return 0, fmt.Errorf("host %s: %w", h.Name(), err)
	}
	return pid, nil
}

// Output runs a command there and returns what it prints, without white space around it.
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

// A Way is a direction on the link between a host and the switch.
type Way string

// The ways that can be cut.
const (
	Both Way = "both" // the host sees that its link is down
	To   Way = "to"   // what is sent to the host is lost, and nobody is told
	From Way = "from" // what the host sends is lost, and nobody is told
)

// Cut cuts the host off; whatever was cut before is joined.
func (h Host) Cut(way Way) error { return h.call("Cut", Cutting{h.number, way}) }

// Join ends that.
func (h Host) Join() error { return h.call("Cut", Cutting{h.number, ""}) }

// Narrow lets the switch pass no packets to the host and from it that are larger, without anybody
// being told; 1500 ends that.
func (h Host) Narrow(mtu int) error { return h.call("Narrow", Wire{h.number, mtu}) }

// Kill ends all that runs there at once, as if it had lost its power. Its disk stays.
func (h Host) Kill() error { return h.call("Kill", h.number) }

// Boot starts it again after that.
func (h Host) Boot() error { return h.call("Boot", h.number) }

// Pause lets all processes of the host stand still until Resume.
func (h Host) Pause() error { return h.call("Freeze", Frost{h.number, true}) }

// Resume ends that.
func (h Host) Resume() error { return h.call("Freeze", Frost{h.number, false}) }

// SlowDisk bounds how many bytes a second the host reads from its disk, and writes to it; 0 ends
// that. On cgroup v1 it does not bound what nodes do, and of what is written only what somebody
// waits for (fsync).
func (h Host) SlowDisk(rate int64) error { return h.call("Slow", Speed{h.number, rate}) }

// AddUser adds a person who comes by the same key as root, and may call anything by sudo, or
// nothing. It is there until the host ends.
func (h Host) AddUser(name string, sudo bool) error {
	_, err := h.Output("/bin/sh", "-c", addUser, "sh", name, strconv.FormatBool(sudo))
	return err
}

// addUser adds a user who comes by the keys of root and, if the second word is not false, may do
// anything by sudo.
const addUser = `set -e
id "$1" >/dev/null 2>&1 || useradd -m -s /bin/bash "$1"; usermod -p '*' "$1"
cp -r /root/.ssh "/home/$1/"; chown -R "$1:" "/home/$1/.ssh"
rm -f "/etc/sudoers.d/$1"
[ "$2" = false ] || { echo "$1 ALL=(ALL) NOPASSWD: ALL" >"/etc/sudoers.d/$1"; chmod 440 "/etc/sudoers.d/$1"; }`

// SetEnv sets variables for all that root runs on the host by SSH from now on. A host cannot have a calendar
// other than the machine's; a program that reads from a variable how far its clock is ahead can stand in for
// that. (A time namespace has a monotonic clock and one since boot of its own, and nothing else.)
func (h Host) SetEnv(variables ...string) error {
	cmd := h.Command("/bin/sh", "-c", "cat >/root/.ssh/environment")
	cmd.Stdin = strings.NewReader(strings.Join(variables, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("host %s: %w\n%s", h.Name(), err, out)
	}
	return nil
}
