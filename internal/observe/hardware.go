package observe

// Hugepages are the large pages of one size that a host has set aside.
type Hugepages struct {
	Size  int64 `json:"size"` // bytes
	Total int64 `json:"total"`
	Free  int64 `json:"free"` // nobody has them, and nobody is promised them
}

// Numa is a node of a host's memory, with the processors beside it.
type Numa struct {
	ID     int    `json:"id"`
	Online string `json:"online"` // processors, as the kernel lists them: "0-3,8"

	Hugepages []Hugepages `json:"hugepages,omitempty"` // those of a host that are here
}

// A Function is one of the PCI bus.
type Function struct {
	Address string `json:"address"` // "0000:03:00.0"
	Driver  string `json:"driver,omitempty"`
	Group   string `json:"group,omitempty"` // with whose others it reaches the same memory; "": no IOMMU is before it
	Bridge  bool   `json:"bridge,omitempty"`
	Holder  string `json:"holder,omitempty"` // SITE/ID of the node it is lent to
}

// A Pool is memory for virtual machines that is none of the host's own, in bytes: on a Dom0 of Xen,
// what Xen has.
type Pool struct {
	Total int64 `json:"total"`
	Free  int64 `json:"free"`
}
