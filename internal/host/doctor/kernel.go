package doctor

import (
	"fmt"
	"orrery/internal/host"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// kernel checks whether the kernel is new enough and has the features that nodes need.
func (m machine) kernel() Facts {
	return Facts{m.release(), overlay(), m.seccomp()}
}

// release checks for Linux 5.19, the first version whose overlayfs supports idmapped layers. These
// let all nodes share the same layers, whatever user ids they run under.
func (m machine) release() Fact {
	release := m.read("proc/sys/kernel/osrelease")
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil || major < 5 || major == 5 && minor < 19 {
		return Fact{"kernel", false, Required, release + ", older than 5.19",
			"install a newer kernel (Debian 12 has 6.1; Debian 11: linux-image-amd64 from bullseye-backports)"}
	}
	return Fact{"kernel", true, Required, release, ""}
}

func overlay() Fact {
	return trialFact("overlayfs", Required, inNamespace(unix.CLONE_NEWNS|unix.CLONE_FS, tryOverlay),
		"run orrery as root on a kernel with overlayfs: modprobe overlay")
}

// inNamespace calls try on a thread that is alone in new namespaces, which end with it.
func inNamespace(flags int, try func() error) error {
	return host.OnLockedThread(func() error {
		if err := unix.Unshare(flags); err != nil {
			return err
		}
		return try()
	})
}

// tryOverlay mounts an overlay on a tmpfs, and writes into it.
func tryOverlay() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	const at = "/proc" // any directory that always exists: only this thread sees the mount
	if err := unix.Mount("orrery", at, "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("tmpfs: %w", err)
	}
	for _, dir := range []string{"lower", "upper", "work", "merged"} {
		if err := os.Mkdir(filepath.Join(at, dir), 0o755); err != nil {
			return err
		}
	}
	options := strings.ReplaceAll("lowerdir=@/lower,upperdir=@/upper,workdir=@/work", "@", at)
	if err := unix.Mount("overlay", at+"/merged", "overlay", 0, options); err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	return os.WriteFile(at+"/merged/file", nil, 0o644)
}

func (m machine) seccomp() Fact {
	if actions := m.read("proc/sys/kernel/seccomp/actions_avail"); actions != "" {
		return Fact{"seccomp", true, Recommended, actions, ""}
	}
	return Fact{"seccomp", false, Recommended, "not in this kernel",
		"containers run without a system call filter; use a kernel with CONFIG_SECCOMP_FILTER"}
}
