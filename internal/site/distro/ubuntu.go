package distro

import (
	"runtime"
	"slices"

	"orrery/internal/site"
)

// Ubuntu is much as Debian is.
var Ubuntu = &Distribution{
	Name: "ubuntu", Title: "Ubuntu",
	Suites:     []string{"trusty", "xenial", "bionic", "focal", "jammy", "noble", "oracular", "plucky", "questing"},
	Components: []string{"main", "universe"}, // python3-venv is in the second
	Keyring:    "/usr/share/keyrings/ubuntu-archive-keyring.gpg",
	Archive:    ubuntuArchive(),
	Base:       append(slices.Clone(Debian.Base), "apt"), // which is not "required" there
	Venv:       Debian.Venv,
	SSH:        Debian.SSH,
	Kernel:     "linux-image-virtual",
	FullKernel: "linux-image-generic",
	Packages:   apt,
	Services:   systemd,
}

// ubuntuArchive returns where the packages for this machine are: those of the first processors are
// apart from all others.
func ubuntuArchive() site.Mirror {
	if runtime.GOARCH == "amd64" {
		return site.Mirror{Apt: "http://archive.ubuntu.com/ubuntu", Security: "http://security.ubuntu.com/ubuntu"}
	}
	return site.Mirror{Apt: "http://ports.ubuntu.com/ubuntu-ports", Security: "http://ports.ubuntu.com/ubuntu-ports"}
}
