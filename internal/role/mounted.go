package role

import (
	"context"
	"errors"
	"strings"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/distro"
)

// maxMountsBytes limits the list of mounts that a node prints.
const maxMountsBytes = 4 << 20

// checkMount checks that something is mounted at a path in the node, and that its file system answers. A
// service that writes to the empty directory below a missing mount looks healthy otherwise.
func checkMount(ctx context.Context, in host.Runner, path string) error {
	// The list of the kernel (proc_pid_mountinfo(5)) is read and not the path, which may hang.
	said, err := host.Output(ctx, in, host.Command{Args: []string{"cat", "/proc/self/mountinfo"}}, maxMountsBytes)
	if err != nil {
		return err
	}
	if !isMountPoint(string(said), path) {
		return errors.New("nothing is mounted there")
	}
	ask := host.Command{Args: []string{"stat", "--file-system", "--", path}}
	if _, err := host.Output(ctx, in, ask, 64<<10); err != nil {
		if ctx.Err() != nil {
			return errors.New("the file system that is mounted there does not answer")
		}
		return err
	}
	return nil
}

// isMountPoint reports whether a list of mounts in the form of /proc/PID/mountinfo has a mount point.
func isMountPoint(mountinfo, path string) bool {
	for line := range strings.Lines(mountinfo) {
		if f := strings.Fields(line); len(f) > 4 && unescapeMount.Replace(f[4]) == path {
			return true
		}
	}
	return false
}

// unescapeMount replaces what the kernel escapes in paths.
var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// checkUnit checks that a unit of systemd is active.
func checkUnit(ctx context.Context, in host.Runner, sv *distro.Services, unit string) error {
	said, err := host.Output(ctx, in, host.Command{Args: append(sv.Active[:len(sv.Active):len(sv.Active)], unit)}, 64<<10)
	if err == nil {
		return nil
	}
	if state := shortLine(string(said)); ctx.Err() == nil && state != "" {
		return problem.New(problem.Failed, "it is %s", state)
	}
	return err
}
