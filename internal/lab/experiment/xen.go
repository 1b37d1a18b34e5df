package experiment

import (
	"slices"

	"orrery/internal/site"
	"orrery/internal/strict"
)

// xen checks the keys for guests of Xen, and those that such guests do not support.
func (r *reading) xen(at *strict.Node, s *Setting) {
	switch where := at.At("type"); {
	case r.bad[where] || s.Type == "":
	case s.Engine != site.Xen:
		r.addMistake(where, mistake("type = %q applies to Xen guests", s.Type).Try("write engine = %q, or remove it",
			site.Xen))
	case !slices.Contains(site.XenTypes, s.Type):
		r.addMistake(where, withSuggestion(mistake("type %q is unknown", s.Type), s.Type, site.XenTypes))
	}
	if s.Engine == site.Xen && s.Disk != "" && s.Missing == "" {
		s.Missing = "this Orrery does not support disks of Xen guests yet; without one they use a directory of the host"
	}
}
