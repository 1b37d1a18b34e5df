package treesync

import "strings"

// A Policy is a set of kinds of extended attributes. This is the only place that decides which
// attributes of a file are sent to another host or restored from a backup or archive. An attribute
// of the wrong kind would control the overlayfs or the security modules of the host that writes it.
type Policy uint8

// Kinds of attributes.
const (
	ofUsers    Policy = 1 << iota // user.*, and ACLs
	capability                    // lets a program run with rights of root
	nestedMark                    // hides lower files in an overlay that was mounted inside a node
	mark                          // the same in an overlay of the host
	note                          // overlayfs's record of a file's origin, with numbers that are only valid on one disk
	foreign                       // all others
)

// Policies.
const (
	// Carried attributes are content. They are sent between hosts of a site and restored from
	// backups.
	Carried = ofUsers | capability | nestedMark | mark
	// Open attributes are restored to a place that users of the host can reach. A capability would
	// give those users rights.
	Open = Carried &^ capability
	// Imported attributes are extracted from an archive that anyone may have written. They do not
	// control an overlay of the host.
	Imported = Carried &^ mark
	// Lasting attributes keep their meaning on another disk. Backups and digests of layers include
	// them all.
	Lasting = Carried | foreign
)

// kinds are the attributes that cannot be recognised by their prefix.
var kinds = map[string]Policy{
	"system.posix_acl_access": ofUsers, "system.posix_acl_default": ofUsers,
	"security.capability":    capability,
	"user.overlay.opaque":    nestedMark,
	"user.overlay.whiteout":  nestedMark,
	"trusted.overlay.opaque": mark, "trusted.overlay.whiteout": mark,
	"trusted.overlay.origin": note, "trusted.overlay.impure": note, "trusted.overlay.nlink": note,
	"trusted.overlay.uuid":  note,
	"trusted.overlay.upper": note,
}

func kindOf(name string) Policy {
	if kind, ok := kinds[name]; ok {
		return kind
	}
	if strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.overlay.") {
		return ofUsers
	}
	return foreign
}

// Passes reports whether the policy includes an attribute.
func (p Policy) Passes(name string) bool { return p&kindOf(name) != 0 }

// Filter returns the attributes that the policy includes, or nil if there are none.
func (p Policy) Filter(attrs map[string][]byte) map[string][]byte {
	var passed map[string][]byte
	for name, value := range attrs {
		if !p.Passes(name) {
			continue
		}
		if passed == nil {
			passed = map[string][]byte{}
		}
		passed[name] = value
	}
	return passed
}
