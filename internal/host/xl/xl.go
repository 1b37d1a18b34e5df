// Package xl drives Xen's toolstack.
//
// It finds out whether this machine is a Dom0, runs xl(1), and parses its output. That output comes
// from the hypervisor and from xenstore, where guests can also write. So its length is limited, and
// an unexpected word is an error.
package xl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/text/sanitize"
)

// maxOutputBytes limits the output of a call of xl. xlTimeout limits how long a call may take that
// does not wait for a guest.
const (
	maxOutputBytes = 16 << 20
	xlTimeout      = 2 * time.Minute
)

// Program returns the path of xl.
func Program() (string, error) {
	path, err := exec.LookPath("xl")
	if err != nil {
		return "", problem.New(problem.Unable, "Xen's toolstack, xl, is not installed").
			Try("apt-get install xen-system-amd64, and boot Xen")
	}
	return path, nil
}

// CheckRequirements returns why this machine cannot run guests of Xen, or nil if it can.
func CheckRequirements() error { return checkRequirements("/") }

// CheckDom0 returns why this machine has no guests of Xen, running or not, or nil if it may have some.
func CheckDom0() error { return checkDom0("/") }

// checkRequirements is CheckRequirements for another root directory, in a test.
func checkRequirements(root string) error {
	if err := checkDom0(root); err != nil {
		return err
	}
	if _, err := Program(); err != nil {
		return err
	}
	_, err := DeviceModel()
	return err
}

func checkDom0(root string) error {
	kind, _ := os.ReadFile(filepath.Join(root, "sys/hypervisor/type"))
	if strings.TrimSpace(string(kind)) != "xen" {
		return problem.New(problem.Unable, "this host does not run on Xen").
			Try("apt-get install xen-system-amd64, and choose Xen at boot")
	}
	capabilities, _ := os.ReadFile(filepath.Join(root, "proc/xen/capabilities"))
	if !strings.Contains(string(capabilities), "control_d") {
		return problem.New(problem.Unable, "this host is a guest of Xen and not its Dom0, or /proc/xen is not mounted").
			Try("run orrery in Dom0, after systemctl start xen-init-dom0")
	}
	return nil
}

// DeviceModel returns the path of the QEMU that supports Xen. Debian has it in a package of its
// own.
func DeviceModel() (string, error) {
	all := []string{"/usr/libexec/xen-qemu-system-i386", "/usr/lib/xen/bin/qemu-system-i386",
		"/usr/local/lib/xen/bin/qemu-system-i386"}
	others, _ := filepath.Glob("/usr/lib/xen-*/bin/qemu-system-i386")
	slices.Reverse(others) // the newest first
	for _, place := range append(all, others...) {
		if info, err := os.Stat(place); err == nil && info.Mode().Perm()&0o111 != 0 {
			return place, nil
		}
	}
	if path, err := exec.LookPath("xen-qemu-system-i386"); err == nil {
		return path, nil
	}
	return "", problem.New(problem.Unable, "the QEMU that serves the root of Xen guests is not installed").
		Try("apt-get install qemu-system-xen")
}

// Run runs xl with some arguments.
func Run(ctx context.Context, args ...string) error {
	_, err := Output(ctx, args...)
	return err
}

// Output runs xl with some arguments and returns what it prints.
func Output(ctx context.Context, args ...string) ([]byte, error) {
	program, err := Program()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, xlTimeout, fmt.Errorf("it did not end within %v", xlTimeout))
	defer cancel()
	said, err := host.Output(ctx, host.Local{Name: "xl"}, host.Command{Args: append([]string{program}, args...)},
		maxOutputBytes)
	if err == nil {
		return said, nil
	}
	if run := (*host.RunError)(nil); errors.As(err, &run) {
		return nil, Failed(args, run.Output, exitText(run))
	}
	return nil, Failed(args, "", err)
}

// exitText returns how a command has ended, without its output.
func exitText(run *host.RunError) error {
	if run.Status < 0 && run.Err != nil {
		return run.Err
	}
	return fmt.Errorf("exit status %d", run.Status)
}

// Failed returns a problem that says that xl has failed, with the last lines of its output.
func Failed(args []string, said string, err error) error {
	verb := "xl"
	if len(args) > 0 {
		verb += " " + args[0]
	}
	if words := LastLines(said); words != "" {
		err = fmt.Errorf("%w: %s", err, words)
	}
	return problem.New(problem.Failed, "%s failed", verb).Because(err)
}

// maxLines limits how many lines of xl's output a problem contains.
const maxLines = 4

// LastLines returns the last lines of an error output, without the source positions that libxl writes.
func LastLines(said string) string {
	var lines []string
	for line := range strings.Lines(said) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, message(line))
		}
	}
	return sanitize.Line(strings.Join(lines[max(0, len(lines)-maxLines):], "; "))
}

// message returns the message of a line. For "libxl: error:
// libxl_dm.c:2938:device_model_spawn_outcome: Domain 3:domain 3 device model: spawn failed", that
// is the text after the source position.
func message(line string) string {
	for _, severity := range []string{"libxl: error: ", "libxl: warning: "} {
		if _, rest, ok := strings.Cut(line, severity); ok {
			if parts := strings.SplitN(rest, ":", 4); len(parts) == 4 && strings.HasSuffix(parts[0], ".c") {
				rest = parts[3]
			}
			return strings.TrimSpace(rest)
		}
	}
	return line
}

// IsNotFound reports whether an error of xl means that the domain does not exist.
func IsNotFound(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "is an invalid domain identifier") || strings.Contains(text, "does not exist")
}
