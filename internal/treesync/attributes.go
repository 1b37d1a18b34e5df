package treesync

import "strings"

// A Policy is a set of kinds of extended attributes. This is the one place that decides which
// attributes of a file go to another host, come back from a backup or out of an archive: an
// attribute of the wrong kind would steer the overlayfs or the security modules of the host that
// writes it.
type Policy uint8

// Kinds of attributes.
const (
	ofUsers    Policy = 1 << iota // user.*, and ACLs
	capability                    // runs a program with rights of root
	nestedMark                    // hides what is below it, in an overlay that was mounted inside a node
	mark                          // the same in an overlay of the host
	note                          // overlayfs's note where a file came from: it holds numbers of one disk
	foreign                       // all others
)

// Policies.
const (
	// Carried go between hosts of a site, and come back from a backup: they are content.
	Carried = ofUsers | capability | nestedMark | mark
	// Open come back to a place that users of the host can reach: a capability would be theirs.
	Open = Carried &^ capability
	// Imported come out of an archive that anybody may have written. It has no overlay of the host.
	Imported = Carried &^ mark
	// Lasting mean something after this disk is gone. Backups and digests of layers have them all.
	Lasting = Carried | foreign
)

// kinds are the attributes that are not known by their prefix.
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

// Passes reports whether the policy lets an attribute through.
func (p Policy) Passes(name string) bool { return p&kindOf(name) != 0 }

// Filter returns the attributes that the policy lets through, or nil if there are none.
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
