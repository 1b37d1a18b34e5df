package doctor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// lxcfs checks whether lxcfs runs (lxcfs(1)). A node starts with what it provides at that moment.
func lxcfs(m machine) Facts {
	const name = "lxcfs"
	const without = "free and uptime in containers show the host"
	switch _, err := os.Stat(filepath.Join(m.root, "var/lib/lxcfs/proc/meminfo")); {
	case err == nil:
		return Facts{{name, true, Info, "on: free and uptime in containers show their own", ""}}
	case !errors.Is(err, fs.ErrNotExist):
		return Facts{{name, false, Recommended, "ended: " + err.Error(),
			"systemctl restart lxcfs, then orrery restart the nodes that have used it"}}
	case m.has("usr/bin/lxcfs"):
		return Facts{{name, false, Info, "off: " + without, "systemctl enable --now lxcfs, then orrery restart"}}
	}
	return Facts{{name, false, Info, "not installed: " + without, "apt-get install lxcfs, then orrery restart"}}
}
