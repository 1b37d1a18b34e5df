package distro

import (
	"runtime"

	"orrery/internal/site"
)

// Debian is the default distribution of images.
var Debian = &Distribution{
	Name: "debian", Title: "Debian",
	Suites: []string{"squeeze", "wheezy", "jessie", "stretch", "buster", "bullseye", "bookworm", "trixie", "forky",
		"sid"},
	SuiteAliases:   []string{"stable", "oldstable", "testing", "unstable", "experimental"},
	WithoutPockets: []string{"sid", "unstable", "experimental"},
	Components:     []string{"main"},
	Keyring:        "/usr/share/keyrings/debian-archive-keyring.gpg",
	Archive:        site.Mirror{Apt: "http://deb.debian.org/debian", Security: "http://deb.debian.org/debian-security"},
	Base: []string{
		"ca-certificates", "dbus", "iproute2", "iputils-ping", "netbase", "openssh-server", "procps",
		"python3-minimal", "systemd-sysv",
	},
	Venv:       "python3-venv",
	SSH:        "ssh.service",
	Kernel:     "linux-image-cloud-" + runtime.GOARCH, // has only drivers for virtual machines
	FullKernel: "linux-image-" + runtime.GOARCH,
	Packages:   apt,
	Services:   systemd,
}
