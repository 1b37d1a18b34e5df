package check

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"orrery/internal/site"
)

// kernelDirs are directories of the kernel. Files there do not persist.
var kernelDirs = []string{"/proc", "/sys", "/dev"}

// orreryPaths are the files that Orrery itself installs on every node.
var orreryPaths = []string{"/etc/orrery", "/etc/hosts", "/etc/hostname", "/etc/machine-id", "/opt/orrery/venv"}

// resolvConf is hidden while a layer is built.
const resolvConf = "/etc/resolv.conf"

// checkTarget checks the path on a node where something is installed.
func checkTarget(found *findings, key []string, kind, p string) {
	inside := func(dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }
	switch {
	case p == "":
		found.report(key, `write path = "/…"`, "the %s has no path", kind)
	case !path.IsAbs(p) || path.Clean(p) != p || p == "/" || strings.ContainsAny(p, "\x00\n"):
		found.report(key, fmt.Sprintf("write path = %q", path.Join("/", "etc", path.Base(p))),
			"path %q is not a clean absolute path", p)
	case slices.ContainsFunc(kernelDirs, inside):
		found.report(key, "put it elsewhere", "path %q belongs to the kernel", p)
	case slices.ContainsFunc(orreryPaths, inside):
		found.report(key, "put it elsewhere", "path %q belongs to Orrery", p)
	}
}

func checkRoleFiles(found *findings, r *site.Role) {
	for k, f := range r.Files {
		checkTarget(found, at("role", r.Name, "file", k, "path"), "file", f.Path)
		if f.Path == resolvConf && !f.Rendered() {
			found.report(at("role", r.Name, "file", k, "path"), `write it as a template = "…", which is rendered when the node starts`,
				"file %s cannot be in a layer: builds have one of their own", f.Path)
		}
		checkOwner(found, at("role", r.Name, "file", k, "owner"), f.Owner)
	}
}

func checkRoleChanges(found *findings, r *site.Role) {
	for k, p := range r.Changes {
		if !path.IsAbs(p) || path.Clean(p) != p || p == "/" {
			found.report(at("role", r.Name, "changes", k), `such as "/etc/portal.json", or a directory`,
				"%q in changes is not a clean absolute path", p)
		}
	}
}
