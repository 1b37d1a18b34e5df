package site

import "cmp"

// A XenGuest has the settings of a Xen guest. An empty field means the default.
type XenGuest struct {
	Type string `toml:"type" json:"type,omitempty"` // one of XenTypes, or "" for PVH
}

// The types of guests of Xen.
const (
	PV  = "pv"  // the kernel knows that it runs on Xen and makes hypercalls instead of using the hardware
	PVH = "pvh" // it runs on virtual processors and has only Xen devices
	HVM = "hvm" // it has an emulated machine as well
)

// XenTypes lists all types. The first is the default.
var XenTypes = []string{PVH, PV, HVM}

// Vif is the network card of Xen guests.
const Vif = "vif"

// Kind returns the type of the guest.
func (x XenGuest) Kind() string { return cmp.Or(x.Type, PVH) }
