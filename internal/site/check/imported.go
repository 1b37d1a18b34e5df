package check

import (
	"slices"

	"orrery/internal/site"
)

// checkDiskImage checks the disk settings of an image: that the image is a disk, and how a virtual
// machine uses it.
func checkDiskImage(found *findings, i *site.Image) {
	key := func(name string) []string { return at("image", i.Name, name) }
	if !i.IsDisk() {
		for _, of := range []struct{ key, value string }{{"firmware", i.Firmware}, {"guest", i.Guest}, {"login", i.Login},
			{"bus", i.Bus}} {
			if of.value != "" {
				found.report(key(of.key), `remove it, or import a disk: import = "disk.qcow2"`,
					"image %s is not a disk but has %s = %q", i.Name, of.key, of.value)
			}
		}
		return
	}
	for _, of := range []struct {
		key, value string
		known      []string
	}{{"firmware", i.Firmware, site.Firmwares}, {"guest", i.Guest, site.Guests}, {"bus", i.Bus, site.Buses}} {
		if of.value != "" && !slices.Contains(of.known, of.value) {
			found.report(key(of.key), "use "+sentence(of.known), "%s = %q is unknown", of.key, of.value)
		}
	}
	if i.Login != "" && !account().MatchString(i.Login) {
		found.report(key("login"), `such as "debian"`, "login = %q is not a user name", i.Login)
	}
	if i.Login != "" && i.Guest == site.NoGuest {
		found.report(key("login"), `remove it, or remove guest = "none"`,
			"image %s has login = %q, but guest = \"none\" allows no login", i.Name, i.Login)
	}
	if len(i.Packages) > 0 {
		found.report(key("packages"), "install them by a role: apt = […]",
			"image %s is a disk, to which packages cannot be added",
			i.Name)
	}
}

// checkImported checks for settings that a node with a disk image cannot have.
func checkImported(ix *index, found *findings, n *site.Node) {
	i, ok := ix.Image(n.Image)
	if !ok || !i.IsDisk() {
		return
	}
	if !n.Virtual() {
		found.report(atNode(n, "image"), `write engine = "kvm", or another image`,
			"node %s: engine %s cannot boot image %s, which is a disk", n.Name, n.Engine, i.Name)
		return
	}
	if n.Engine == site.Xen {
		checkImportedOnXen(found, n, i)
	}
	if len(n.VM.Drives()) > 0 {
		found.report(atNode(n, "vm"), "remove its disks", "node %s boots image %s, which is its only disk",
			n.Name, i.Name)
	}
	roles := ix.rolesOf(n.Roles)
	if i.Guest == site.NoGuest && len(roles) > 0 {
		found.report(atNode(n, "roles"), "remove them",
			`node %s boots image %s with guest = "none" and cannot have roles`, n.Name, i.Name)
		return
	}
	for _, r := range roles {
		switch {
		case len(r.Volumes) > 0:
			found.report(atNode(n, "roles"), "give the role to a node whose image is not a disk",
				"node %s boots a disk image and cannot mount volumes, such as %s of role %s", n.Name,
				r.Volumes[0].Name, r.Name)
		case len(r.Secrets) > 0:
			found.report(atNode(n, "roles"), "give the role to a node whose image is not a disk",
				"node %s boots a disk image, on which secret %s of role %s would remain", n.Name, r.Secrets[0].Name,
				r.Name)
		}
	}
}

// checkImportedOnXen checks the disk image of a Xen guest. The host can reach such a guest only
// over its network, and the guest has no choice of emulated hardware.
func checkImportedOnXen(found *findings, n *site.Node, i *site.Image) {
	for _, of := range []struct {
		wrong      bool
		cure, what string
	}{
		{i.Disk().Guest != site.NoGuest, `write guest = "none" for the image, or engine = "kvm" for the node`,
			"whose guest Orrery cannot configure there"},
		{i.Firmware == site.UEFI, `write firmware = "bios", if the image boots with it, or engine = "kvm"`,
			"which cannot boot firmware uefi"},
		{i.Bus != "", "remove it", "whose disk always uses Xen's own bus"},
	} {
		if of.wrong {
			found.report(atNode(n, "image"), of.cure, "node %s boots image %s as a guest of Xen, %s", n.Name, i.Name, of.what)
		}
	}
}
