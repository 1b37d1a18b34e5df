package site

import "cmp"

// A XenGuest is what a guest of Xen is to Xen. Empty fields mean the usual.
type XenGuest struct {
	Type string `toml:"type" json:"type,omitempty"` // one of XenTypes; "": PVH
}

// The types of guests of Xen.
const (
	PV  = "pv"  // its kernel knows that it runs on Xen, and asks it for all that processors would do for it
	PVH = "pvh" // it runs on virtual processors, and has devices of Xen's only
	HVM = "hvm" // it has an emulated machine, too
)

// XenTypes are all of them, the usual one first.
var XenTypes = []string{PVH, PV, HVM}

// Vif is the network card that guests of Xen have.
const Vif = "vif"

// Kind returns the type of the guest.
func (x XenGuest) Kind() string { return cmp.Or(x.Type, PVH) }
