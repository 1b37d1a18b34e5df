// Package boot runs in a virtual machine between kernel and init: orrery-guest, the only program in
// the initramfs, loads modules, mounts the root, configures the network, starts the agent, and
// executes the node's own /sbin/init.
//
// An engine writes a Config onto the command line of the kernel. Whatever goes wrong is one line on
// the console, and the machine is switched off.
package boot

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/netip"
	"strings"

	"orrery/internal/problem"
)

// The ways in which a machine has its root.
const (
	VirtioFS = "virtiofs" // the virtiofs with the tag RootTag
	NineP    = "9p"       // 9p over virtio, with the same tag
	NinePXen = "9p-xen"   // 9p of a Dom0 of Xen, likewise
)

// RootTag is the name under which the host offers the root.
const RootTag = "root"

// A Config is what the guest is told of itself.
type Config struct {
	Root   string  `json:"root"`             // VirtioFS, NineP or NinePXen
	Mounts []Mount `json:"mounts,omitempty"` // what else the host shares, in the order in which it is mounted
	// serial number of the disk on which it keeps what it writes; "": in its root
	Disk     string `json:"disk,omitempty"`
	Hostname string `json:"hostname,omitempty"` // until its init reads /etc/hostname
	NICs     []NIC  `json:"nics,omitempty"`
	Told     bool   `json:"told,omitempty"` // its interfaces come and go: those that it has are in NICsFile
}

// A Mount is a directory of the host beside the root, offered in the same way under a tag of its
// own. What the host changes in it is seen at once.
type Mount struct {
	Tag  string `json:"tag"`
	Path string `json:"path"` // in the node
}

// A NIC is a network interface of the guest.
type NIC struct {
	MAC     string       `json:"mac"`  // by which it is found
	Name    string       `json:"name"` // which it gets
	Address netip.Prefix `json:"address,omitzero"`
	Gateway string       `json:"gateway,omitempty"` // of the default route, only on the interface that has it
	MTU     int          `json:"mtu,omitempty"`     // 0: the kernel's
}

// NICsFile is where a machine whose interfaces come and go finds those that it has when it boots,
// as []NIC in JSON: in the directory that the host shows to it. It has nothing that the machine
// lacks.
const NICsFile = "etc/orrery/.nics.json"

// key is the word of the kernel's command line that has the Config.
const key = "orrery.config="

// maxEncodedBytes bounds that word: the kernel takes 2,048 bytes on x86 and cuts off what is more
// (COMMAND_LINE_SIZE), and other words must fit, too.
const maxEncodedBytes = 1800

// Encode returns the word of the kernel's command line by which the guest is told.
func (c *Config) Encode() (string, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	word := key + base64.RawURLEncoding.EncodeToString(text)
	if len(word) > maxEncodedBytes {
		return "", problem.New(problem.Mistake,
			"%d network interfaces take %d bytes on the command line of the machine's kernel; there is room for %d",
			len(c.NICs), len(word), maxEncodedBytes).
			Try("give the node fewer interfaces")
	}
	return word, nil
}

// Decode finds the Config on the command line of a kernel.
func Decode(line string) (*Config, error) {
	for word := range strings.FieldsSeq(line) {
		encoded, ok := strings.CutPrefix(word, key)
		if !ok {
			continue
		}
		text, err := base64.RawURLEncoding.DecodeString(encoded)
		if err != nil {
			return nil, problem.New(problem.Mistake, "the word %s of the kernel's command line is damaged",
				strings.TrimSuffix(key, "=")).Because(err)
		}
		c := &Config{}
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields() // of a newer version, which would be left undone
		if err := d.Decode(c); err != nil {
			return nil, problem.New(problem.Mistake, "the word %s of the kernel's command line is not understood",
				strings.TrimSuffix(key, "=")).Because(err).
				Try("orrery and orrery-guest are to be of one version")
		}
		return c, nil
	}
	return nil, problem.New(problem.Mistake, "the kernel's command line has no word %s", strings.TrimSuffix(key, "="))
}
