// Package device has the devices of a host that a container may use, and the form in which site files
// write them.
package device

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/strict"
	"orrery/internal/text/pattern"
)

// A Device names one device of a host, or several.
type Device struct {
	// Path is a file below /dev, a class of devices such as "block:8:*", or "usb:" with the ids of
	// vendor and product.
	Path   string `json:"path"`
	Mode   string `json:"mode,omitempty"`   // Read, Write, or "" for both
	Shared bool   `json:"shared,omitempty"` // other nodes that say so may use it at the same time
}

// Modes of a Device.
const (
	Read      = "r"
	Write     = "w"
	ReadWrite = "rw" // only in site files
)

// Max is how many devices a node may declare.
const Max = 64

// maxPath limits the length of a path.
const maxPath = 200

var (
	filePath = pattern.New(`^/dev/[A-Za-z0-9_.:@+,=~/-]+$`)
	class    = pattern.New(`^(block|char):([0-9]{1,4}):([0-9]{1,7}|\*)$`)
	usb      = pattern.New(`^usb:([0-9a-f]{4}):([0-9a-f]{4})$`)
)

// forms is how a device can be written, for messages.
const forms = `write the path of its file, such as "/dev/fuse"; a class, such as "block:8:*"; or "usb:1d6b:0002"`

// Parse parses a path, or a table with path, mode and shared.
func (d *Device) Parse(value any) *problem.Problem {
	switch v := value.(type) {
	case string:
		d.Path = v
	case map[string]any:
		if p := d.parseTable(v); p != nil {
			return p
		}
	default:
		return mistake("%s is not a device", strict.Describe(value)).Try("%s", forms)
	}
	return d.checkPath()
}

func (d *Device) parseTable(table map[string]any) *problem.Problem {
	for key, value := range table {
		ok := false
		switch key {
		case "path":
			d.Path, ok = value.(string)
		case "mode":
			var mode string
			if mode, ok = value.(string); ok && mode != ReadWrite {
				d.Mode = mode
				ok = mode == Read || mode == Write
			}
			if !ok {
				return mistake("mode = %s is not a mode of a device", strict.Describe(value)).
					Try(`write "r" (read), "w" (write) or "rw"`)
			}
		case "shared":
			d.Shared, ok = value.(bool)
		default:
			p := mistake("unknown key %s in a device", strict.Describe(key))
			return p.Try("%s", problem.SuggestOr(key, []string{"path", "mode", "shared"}, "known: path, mode, shared"))
		}
		if !ok {
			return mistake("%s = %s is wrong in a device", key, strict.Describe(value)).
				Try(`such as { path = "/dev/fuse", mode = "rw", shared = true }`)
		}
	}
	if d.Path == "" {
		return mistake("a device has no path").Try("%s", forms)
	}
	return nil
}

// own are the files that each container has, below /dev. Those that end in a slash are directories.
var own = []string{"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console", "fd",
	"stdin", "stdout", "stderr",
	"log", "initctl", "pts/", "shm/", "mqueue/", "hugepages/", "fd/", ".lxc/", "lxd/", "incus/"}

// dangerous are the files below /dev that no node gets. The host also refuses their numbers.
var dangerous = []string{"mem", "kmem", "port"}

func (d *Device) checkPath() *problem.Problem {
	written := strict.Describe(d.Path)
	name, isFile := strings.CutPrefix(d.Path, "/dev/")
	switch {
	case !isFile && (class().MatchString(d.Path) || usb().MatchString(d.Path)):
		return nil
	case !isFile && path.IsAbs(d.Path):
		return mistake("%s is not a file below /dev", written).Try("%s; directories are volumes", forms)
	case !isFile || len(d.Path) > maxPath || !filePath().MatchString(d.Path) || path.Clean(d.Path) != d.Path:
		return mistake("%s is not a device", written).Try("%s", forms)
	case slices.Contains(dangerous, name):
		return mistake("device %s reaches the memory of the host, and no node gets it", d.Path).Try("remove it")
	case slices.ContainsFunc(own, func(of string) bool {
		return name == strings.TrimSuffix(of, "/") || strings.HasSuffix(of, "/") && strings.HasPrefix(name, of)
	}):
		return mistake("each node has its own %s", d.Path).Try("remove it")
	}
	return nil
}

// Schema returns the schema of devices.
func (d *Device) Schema() strict.JSONSchema {
	text := strict.JSONSchema{"type": "string", "pattern": "^(/dev/|block:|char:|usb:)"}
	return strict.JSONSchema{"anyOf": []strict.JSONSchema{text, {
		"type": "object", "additionalProperties": false, "required": []string{"path"},
		"properties": strict.JSONSchema{
			"path": text, "mode": strict.JSONSchema{"enum": []string{Read, Write, ReadWrite}},
			"shared": strict.JSONSchema{"type": "boolean"},
		},
	}}}
}

// String returns the device for display: "/dev/fuse, shared".
func (d Device) String() string {
	text := d.Path
	switch d.Mode {
	case Read:
		text += ", only read"
	case Write:
		text += ", only written"
	}
	if d.Shared {
		text += ", shared"
	}
	return text
}

// Access returns the mode with which a control group allows the device.
func (d Device) Access() string {
	if d.Mode == "" {
		return ReadWrite
	}
	return d.Mode
}

// A Class is devices that have numbers in common.
type Class struct {
	Block bool
	Major uint32
	Minor uint32 // unless All is set
	All   bool   // all minor numbers
}

// Class returns the class that the device names, or false if it names none.
func (d Device) Class() (c Class, ok bool) {
	parts := class().FindStringSubmatch(d.Path)
	if parts == nil {
		return c, false
	}
	major, _ := strconv.ParseUint(parts[2], 10, 32) // the pattern allows only digits, and few of them
	minor, err := strconv.ParseUint(parts[3], 10, 32)
	return Class{Block: parts[1] == "block", Major: uint32(major), Minor: uint32(minor), All: err != nil}, true
}

// USB returns the ids of vendor and product of a USB device, or false if the device is none.
func (d Device) USB() (vendor, product string, ok bool) {
	parts := usb().FindStringSubmatch(d.Path)
	if parts == nil {
		return "", "", false
	}
	return parts[1], parts[2], true
}

// Encode returns the device as one word, for Decode.
func (d Device) Encode() string {
	shared := ""
	if d.Shared {
		shared = "shared"
	}
	return d.Access() + ";" + shared + ";" + d.Path
}

// Decode returns the device whose Encode is word, or false if there is none.
func Decode(word string) (d Device, ok bool) {
	parts := strings.SplitN(word, ";", 3)
	if len(parts) != 3 {
		return Device{}, false
	}
	d = Device{Path: parts[2], Mode: parts[0], Shared: parts[1] != ""}
	if d.Mode == ReadWrite {
		d.Mode = ""
	}
	return d, d.checkPath() == nil && d.Encode() == word && (d.Mode == "" || d.Mode == Read || d.Mode == Write)
}

func mistake(format string, args ...any) *problem.Problem {
	return problem.New(problem.Mistake, format, args...)
}
