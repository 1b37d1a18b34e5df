package distro

import (
	"runtime"
	"slices"

	"orrery/internal/site"
)

// Ubuntu differs little from Debian.
var Ubuntu = &Distribution{
	Name: "ubuntu", Title: "Ubuntu",
	Suites:     []string{"trusty", "xenial", "bionic", "focal", "jammy", "noble", "oracular", "plucky", "questing"},
	Components: []string{"main", "universe"}, // python3-venv is in universe
	Keyring:    "/usr/share/keyrings/ubuntu-archive-keyring.gpg",
	Archive:    ubuntuArchive(),
	Base:       append(slices.Clone(Debian.Base), "apt"), // not "required" in Ubuntu
	Venv:       Debian.Venv,
	SSH:        Debian.SSH,
	Kernel:     "linux-image-virtual",
	FullKernel: "linux-image-generic",
	Packages:   apt,
	Services:   systemd,
}

// ubuntuArchive returns the archives for this machine. Those for amd64 are on other servers than
// all others.
func ubuntuArchive() site.Mirror {
	if runtime.GOARCH == "amd64" {
		return site.Mirror{Apt: "http://archive.ubuntu.com/ubuntu", Security: "http://security.ubuntu.com/ubuntu"}
	}
	return site.Mirror{Apt: "http://ports.ubuntu.com/ubuntu-ports", Security: "http://ports.ubuntu.com/ubuntu-ports"}
}
