package observe

// A Given is a node that its host has given to another one: it does not run here any more, and
// nobody may start it here, but all of it is still kept.
type Given struct {
	Node
	To  string `json:"to"`  // the host
	Sum string `json:"sum"` // of what was sent there
}

// An Arrival is what has come of a node from another host and is not yet a node here.
type Arrival struct {
	Name  string `json:"name"`
	ID    int    `json:"id"`
	From  string `json:"from"`            // the host
	Sum   string `json:"sum,omitempty"`   // of what has come; "": it is being written
	Whole bool   `json:"whole,omitempty"` // the last of it was sent when the node stood still
}

// Arrival returns what has come of a node, by its id: of a name there may be one of each release.
func (h *Host) Arrival(id int) (*Arrival, bool) {
	for i := range h.Arrivals {
		if h.Arrivals[i].ID == id {
			return &h.Arrivals[i], true
		}
	}
	return nil, false
}
