package check

import (
	"slices"

	"orrery/internal/site"
)

// checkAccess checks who may log in to a node by SSH.
func checkAccess(ix *index, found *findings, n *site.Node) {
	if n.SSHUser != "" && !account().MatchString(n.SSHUser) {
		found.report(atNode(n, "ssh_user"), `such as "root"`, "ssh_user = %q is not a user name", n.SSHUser)
		return
	}
	if len(n.AuthorizedKeys) == 0 {
		return
	}
	if i, ok := ix.Image(n.Image); ok && i.Disk().Guest == site.NoGuest {
		found.report(atNode(n, "authorized_keys"), "remove it",
			`node %s boots image %s with guest = "none" and cannot have authorized_keys`, n.Name, i.Name)
		return
	}
	file := ix.AccessFile(n)
	for _, r := range ix.rolesOf(n.Roles) {
		if k := slices.IndexFunc(r.Files, func(f site.File) bool { return f.Path == file }); k >= 0 {
			found.reportConflict(at("role", r.Name, "file", k, "path"), atNode(n, "authorized_keys"),
				"move its keys into authorized_keys, and remove the file from the role",
				"file %s of role %s is where node %s has its authorized_keys", file, r.Name, n.Name)
		}
	}
}
