package doctor

import (
	"context"
	"orrery/internal/host"
	"os/exec"
	"strings"
)

// tools are the external programs that Orrery calls, each with its Debian package.
var tools = []struct {
	program, pkg string
	level        Level
	without      string // what does not work without it
}{
	{"lxc-start", "lxc", Required, "no containers"},
	{"mmdebstrap", "mmdebstrap", Recommended, "no images of a suite, only imported ones"},
	{"apt-get", "apt", Recommended, "no images of a suite, only imported ones"},
	{"tar", "tar", Recommended, "no imported images"},
	{"zstd", "zstd", Recommended, "no imported images compressed with zstd"},
	{"runuser", "util-linux", Recommended, "no commands as another user"},
	{"modprobe", "kmod", Info, "kernel modules are not loaded on demand"},
	{"mount.nfs", "nfs-common", Info, "no volumes that are NFS exports"},
	{"nft", "nftables", Info, "network rules cannot be listed; Orrery itself does not need it"},
}

// containers returns the version of LXC.
func (m machine) containers() Facts {
	const name = "LXC"
	out, err := host.Program(context.Background(), "lxc-start", "--version").Output()
	version := strings.TrimSpace(string(out))
	if err != nil {
		return Facts{{name, false, Required, "not installed", "apt-get install lxc"}}
	}
	if major, _, _ := strings.Cut(version, "."); len(major) == 1 && major < "4" {
		return Facts{{name, false, Required, version + ", older than 4.0", "install a newer one: Debian 12 has 5.0"}}
	}
	return append(Facts{{name, true, Required, version, ""}}, m.confinement()...)
}

// confinement checks whether LXC can load the profile of a container. If the kernel has AppArmor,
// LXC starts no container without a profile.
func (m machine) confinement() Facts {
	const name = "AppArmor"
	if !strings.HasPrefix(m.read("sys/module/apparmor/parameters/enabled"), "Y") {
		return Facts{{name, true, Info, "not in this kernel, or off", ""}}
	}
	if _, err := exec.LookPath("apparmor_parser"); err != nil {
		return Facts{{name, false, Required, "on, and apparmor_parser is not installed: LXC starts no container",
			"apt-get install apparmor"}}
	}
	return Facts{{name, true, Required, "on", ""}}
}

// programs checks which programs are installed.
func programs() Facts {
	var installed []string
	var all Facts
	for _, tool := range tools {
		if _, err := exec.LookPath(tool.program); err == nil {
			installed = append(installed, tool.program)
			continue
		}
		all = append(all, Fact{tool.program, false, tool.level, "not installed: " + tool.without,
			"apt-get install " + tool.pkg})
	}
	return append(all, Fact{"programs", true, Info, strings.Join(installed, ", "), ""})
}
