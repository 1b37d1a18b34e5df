package observe

// An OutgoingMove is a node that its host has sent to another host. It no longer runs here and must not be
// started here, but all of its data is still stored.
type OutgoingMove struct {
	Node
	To  string `json:"to"`  // the other host
	Sum string `json:"sum"` // digest of the sent data
}

// An IncomingMove is the data of a node that has arrived from another host and is not yet a node here.
type IncomingMove struct {
	Name  string `json:"name"`
	ID    int    `json:"id"`
	From  string `json:"from"`            // the other host
	Sum   string `json:"sum,omitempty"`   // digest of the received data, or "" while it is being written
	Whole bool   `json:"whole,omitempty"` // the final part was sent while the node was frozen
}

// IncomingMove returns the received data of a node by id. A name is not enough, because each release may
// have a node with that name.
func (h *Host) IncomingMove(id int) (*IncomingMove, bool) {
	for i := range h.IncomingMoves {
		if h.IncomingMoves[i].ID == id {
			return &h.IncomingMoves[i], true
		}
	}
	return nil, false
}
