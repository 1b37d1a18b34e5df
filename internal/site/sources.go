package site

import "orrery/internal/text/pattern"

// A Remote is the address of a volume's data that is not stored on a host. The zero Remote means
// that a host stores it. Each kind of remote source has one field.
type Remote struct {
	NFS string `toml:"nfs" json:"nfs,omitempty"` // server:/export
}

// A VolumeSource has the properties common to all volumes whose data is stored in one way. Rules
// and plans use these properties, not the name of a source. Package volume implements how a host
// accesses the data.
type VolumeSource struct {
	Key string // key of a volume in a site file that selects this source, or ""
	// WithState means that the data is stored with the host's state, counts towards the node's disk
	// use, and moves to other hosts with the node.
	WithState bool
	// Everywhere means that all hosts reach the same data. Nodes on several hosts can share it, and
	// a node can move without copying it.
	Everywhere bool
	// Copyable means that a quarantine or a twin can start with a copy of the data.
	Copyable bool
	// Left is the reason why backups and snapshots leave out the data, or "" if they contain it.
	Left string

	Address func(Remote) string       // value of Key, or nil if the data is on the host
	Valid   func(address string) bool // reports whether address is valid
	Example string                    // example of an address
	What    string                    // what an address is called in messages
}

// VolumeSources are all volume sources. A volume has the first source for which it has an address. The
// last two sources have no address. They are the sources of volumes with a path and without one.
var VolumeSources = []VolumeSource{
	{
		Key: "nfs", Everywhere: true, Left: "it is on an NFS server",
		Address: func(r Remote) string { return r.NFS }, Example: "nas:/export/pgdata", What: "NFS export",
		Valid: func(address string) bool { return nfsExport().MatchString(address) },
	},
	{Key: "path", Copyable: true},
	{WithState: true, Copyable: true},
}

// nfsExport matches server:/export. The server may be an IPv6 address in brackets.
var nfsExport = pattern.New(`^([A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]):/[^\s,]*$`)

// SourceOf returns the source of a volume and the address of its data, or "" if the source has no
// address. Argument path is the volume's directory on the host, or "".
func SourceOf(r Remote, path string) (from VolumeSource, address string) {
	for _, s := range VolumeSources {
		switch {
		case s.Address == nil && (s.Key == "" || path != ""):
			return s, ""
		case s.Address != nil && s.Address(r) != "":
			return s, s.Address(r)
		}
	}
	return VolumeSource{}, ""
}

// From returns the volume's source.
func (v *Volume) From() VolumeSource {
	from, _ := SourceOf(v.Remote, v.Path)
	return from
}
