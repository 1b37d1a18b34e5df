package observe

import "slices"

// Restoring is how far the part of a restore has come that a host has.
type Restoring struct {
	ID      string   `json:"id"` // of the backup
	From    string   `json:"from"`
	Without []string `json:"without,omitempty"` // hosts that were left out, and have no part
	Staged  bool     `json:"staged,omitempty"`  // all of it is laid down, and nothing touched
	Going   bool     `json:"going,omitempty"`   // all hosts have laid down theirs: none goes back
	Clears  bool     `json:"clears,omitempty"`  // what was there before is still to be taken down
	Placed  bool     `json:"placed,omitempty"`  // all is in its place but what nodes get when they are made
	Opened  bool     `json:"opened,omitempty"`  // the secrets of the backup come back
	Nodes   []string `json:"nodes,omitempty"`   // that get what they had when they are made
}

// Untouched reports whether the restore has touched nothing, and what was there before is.
func (r *Restoring) Untouched() bool { return !r.Going && (r.Clears || r.ID == "") }

// Waiting returns the nodes that get what they had when they are made; nil is of no restore.
func (r *Restoring) Waiting() []string {
	if r == nil {
		return nil
	}
	return r.Nodes
}

// Restored reports whether what a node had waits on a host that had the node until a restore took
// it down, for which those hosts were left out of which nothing is known: so none of them has it.
func (h *Host) Restored(node string, hosts map[string]*Host) bool {
	if h == nil || h.Restoring == nil || !h.Restoring.Placed || !slices.Contains(h.Restoring.Nodes, node) {
		return false
	}
	for _, other := range hosts {
		if other.Unknown && !slices.Contains(h.Restoring.Without, other.Name) {
			return false
		}
	}
	return true
}
