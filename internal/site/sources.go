package site

import "orrery/internal/text/pattern"

// A Remote says where the data of a volume is that no host has for itself; the zero Remote: a host
// has it. It has a field for each such source.
type Remote struct {
	NFS string `toml:"nfs" json:"nfs,omitempty"` // server:/export
}

// A VolumeSource is what volumes have in common whose data is kept in one way. Rules and plans ask
// for that, and not for the name of a source; package volume knows how a host gets at the data.
type VolumeSource struct {
	Key string // of a volume in a site file, which says where its data is; "": no key does
	// WithState: it is kept with the state of its host, counts as what the node uses, and moves to
	// other hosts with the node.
	WithState bool
	// Everywhere: all hosts reach the same data. So nodes on several of them can share it, and a node
	// can move without it.
	Everywhere bool
	// Copyable: a copy for a quarantine or a twin can begin with it.
	Copyable bool
	// Left says why no backup and no snapshot has it; "": they have it.
	Left string

	Address func(Remote) string       // of the data, as Key says it; nil: it is on the host
	Valid   func(address string) bool // reports whether that is one
	Example string                    // of one
	What    string                    // that one is
}

// Sources are all sources of volumes. Of a volume, it is the first that has an address; the last
// two have none, and are those of a volume with a path and of one without.
var Sources = []VolumeSource{
	{
		Key: "nfs", Everywhere: true, Left: "it is on an NFS server",
		Address: func(r Remote) string { return r.NFS }, Example: "nas:/export/pgdata", What: "NFS export",
		Valid: func(address string) bool { return nfsExport().MatchString(address) },
	},
	{Key: "path", Copyable: true},
	{WithState: true, Copyable: true},
}

// nfsExport is server:/export, of which the server may be an IPv6 address in brackets.
var nfsExport = pattern.New(`^([A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]):/[^\s,]*$`)

// SourceOf returns the source of a volume, of which a host may have a directory, and the address of
// its data there; "": it has none.
func SourceOf(r Remote, path string) (from VolumeSource, address string) {
	for _, s := range Sources {
		switch {
		case s.Address == nil && (s.Key == "" || path != ""):
			return s, ""
		case s.Address != nil && s.Address(r) != "":
			return s, s.Address(r)
		}
	}
	return VolumeSource{}, ""
}

// From returns the source of the volume.
func (v *Volume) From() VolumeSource {
	from, _ := SourceOf(v.Remote, v.Path)
	return from
}
