// Package boot runs in a virtual machine between kernel and init.
//
// It is part of orrery-guest, the only program in the initramfs. It loads modules, mounts the root,
// configures the network, starts the agent, and executes the node's own /sbin/init.
//
// An engine writes a Config to the kernel's command line. If a step fails, boot prints one line on
// the console and switches the machine off.
package boot

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/netip"
	"strings"

	"orrery/internal/problem"
)

// The file systems by which a host shares a machine's root.
const (
	VirtioFS = "virtiofs" // the virtiofs with the tag RootTag
	NineP    = "9p"       // 9p over virtio, with the same tag
	NinePXen = "9p-xen"   // 9p of a Dom0 of Xen, with the same tag
)

// RootTag is the tag under which the host shares the root.
const RootTag = "root"

// A Config describes the guest to itself.
type Config struct {
	Root   string  `json:"root"`             // VirtioFS, NineP or NinePXen
	Mounts []Mount `json:"mounts,omitempty"` // other directories that the host shares, in the order of mounting
	// serial number of the disk that stores the machine's changes, or "" if they go into the shared
	// root
	Disk     string `json:"disk,omitempty"`
	Hostname string `json:"hostname,omitempty"` // valid until its init reads /etc/hostname
	NICs     []NIC  `json:"nics,omitempty"`
	Told     bool   `json:"told,omitempty"` // whether its interfaces may change: the current ones are in NICsFile
}

// A Mount is a directory of the host besides the root, shared in the same way under a tag of its
// own. The guest sees the host's changes at once.
type Mount struct {
	Tag  string `json:"tag"`
	Path string `json:"path"` // in the node
}

// A NIC is a network interface of the guest.
type NIC struct {
	MAC     string       `json:"mac"`  // identifies the interface
	Name    string       `json:"name"` // the name it gets
	Address netip.Prefix `json:"address,omitzero"`
	Gateway string       `json:"gateway,omitempty"` // of the default route, only on the interface that has one
	MTU     int          `json:"mtu,omitempty"`     // or 0 for the kernel's default
}

// NICsFile is the file from which a machine whose interfaces may change reads its interfaces when
// it boots, as []NIC in JSON. The file is in the directory that the host shares. It lists only
// interfaces that the machine has.
const NICsFile = "etc/orrery/.nics.json"

// key is the parameter of the kernel's command line that contains the Config.
const key = "orrery.config="

// maxEncodedBytes limits the length of that parameter. On x86, the kernel truncates its command
// line to 2,048 bytes (COMMAND_LINE_SIZE), and other parameters need room too.
const maxEncodedBytes = 1800

// Encode returns the parameter for the kernel's command line.
func (c *Config) Encode() (string, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	word := key + base64.RawURLEncoding.EncodeToString(text)
	if len(word) > maxEncodedBytes {
		return "", problem.New(problem.Mistake,
			"%d network interfaces need %d bytes on the kernel's command line, which has room for %d",
			len(c.NICs), len(word), maxEncodedBytes).
			Try("give the node fewer interfaces")
	}
	return word, nil
}

// Decode returns the Config from the command line of a kernel.
func Decode(line string) (*Config, error) {
	for word := range strings.FieldsSeq(line) {
		encoded, ok := strings.CutPrefix(word, key)
		if !ok {
			continue
		}
		text, err := base64.RawURLEncoding.DecodeString(encoded)
		if err != nil {
			return nil, problem.New(problem.Mistake, "kernel command line: the value of %s is damaged",
				strings.TrimSuffix(key, "=")).Because(err)
		}
		c := &Config{}
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields() // a field of a newer version must not be ignored
		if err := d.Decode(c); err != nil {
			return nil, problem.New(problem.Mistake, "kernel command line: the value of %s is invalid",
				strings.TrimSuffix(key, "=")).Because(err).
				Try("use orrery and orrery-guest of the same version")
		}
		return c, nil
	}
	return nil, problem.New(problem.Mistake, "kernel command line: %s is missing", strings.TrimSuffix(key, "="))
}
