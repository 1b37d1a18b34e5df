package treesync

import "strings"

// A Policy is a set of kinds of extended attributes. This is the only place that decides which
// attributes of a file are sent to another host or restored from a backup or archive. An attribute
// of the wrong kind would control the overlayfs or the security modules of the host that writes it.
type Policy uint8

// Kinds of attributes.
const (
	userAttrs          Policy = 1 << iota // user.*, and ACLs
	capability                            // lets a program run with rights of root
	nestedOverlayAttrs                    // hides lower files in an overlay that was mounted inside a node
	overlayAttrs                          // the same in an overlay of the host
	// overlayfs's record of a file's origin, with numbers that are only valid on one disk
	originAttrs
	otherAttrs // all others
)

// Policies.
const (
	// ContentAttrs attributes are content. They are sent between hosts of a site and restored from
	// backups.
	ContentAttrs = userAttrs | capability | nestedOverlayAttrs | overlayAttrs
	// UnprivilegedAttrs attributes are restored to a place that users of the host can reach. A capability would
	// give those users rights.
	UnprivilegedAttrs = ContentAttrs &^ capability
	// ImportedAttrs attributes are extracted from an archive that anyone may have written. They do not
	// control an overlay of the host.
	ImportedAttrs = ContentAttrs &^ overlayAttrs
	// PersistentAttrs attributes keep their meaning on another disk. Backups and digests of layers include
	// them all.
	PersistentAttrs = ContentAttrs | otherAttrs
)

// kinds are the attributes that cannot be recognised by their prefix.
var kinds = map[string]Policy{
	"system.posix_acl_access": userAttrs, "system.posix_acl_default": userAttrs,
	"security.capability":    capability,
	"user.overlay.opaque":    nestedOverlayAttrs,
	"user.overlay.whiteout":  nestedOverlayAttrs,
	"trusted.overlay.opaque": overlayAttrs, "trusted.overlay.whiteout": overlayAttrs,
	"trusted.overlay.origin": originAttrs, "trusted.overlay.impure": originAttrs, "trusted.overlay.nlink": originAttrs,
	"trusted.overlay.uuid":  originAttrs,
	"trusted.overlay.upper": originAttrs,
}

func kindOf(name string) Policy {
	if kind, ok := kinds[name]; ok {
		return kind
	}
	if strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "user.overlay.") {
		return userAttrs
	}
	return otherAttrs
}

// Includes reports whether the policy includes an attribute.
func (p Policy) Includes(name string) bool { return p&kindOf(name) != 0 }

// Filter returns the attributes that the policy includes, or nil if there are none.
func (p Policy) Filter(attrs map[string][]byte) map[string][]byte {
	var passed map[string][]byte
	for name, value := range attrs {
		if !p.Includes(name) {
			continue
		}
		if passed == nil {
			passed = map[string][]byte{}
		}
		passed[name] = value
	}
	return passed
}
