// Package all lists the engines of this program.
package all

import (
	"orrery/internal/engine"
	"orrery/internal/engine/kvm"
	"orrery/internal/engine/lxc"
	"orrery/internal/engine/xen"
	"orrery/internal/host"
	"orrery/internal/image"
)

// Engines returns every engine of this host by the name that site files use.
func Engines(dirs host.Dirs, store *image.Store) map[string]engine.Engine {
	return map[string]engine.Engine{
		lxc.Name: lxc.New(dirs, store),
		kvm.Name: kvm.New(dirs, store),
		xen.Name: xen.New(dirs, store),
	}
}
