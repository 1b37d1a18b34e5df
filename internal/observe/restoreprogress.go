package observe

import "slices"

// RestoreProgress is the progress of a restore on one host.
type RestoreProgress struct {
	ID      string   `json:"id"` // of the backup
	From    string   `json:"from"`
	Without []string `json:"without,omitempty"` // hosts that were left out of the restore
	// Staged means that all data is in the staging directory, and nothing has changed yet.
	Staged bool `json:"staged,omitempty"`
	Going  bool `json:"going,omitempty"`  // all hosts have staged their data, so no host goes back
	Clears bool `json:"clears,omitempty"` // the previous state must still be removed
	// Placed means that all data is in place except what nodes get when they are created.
	Placed bool     `json:"placed,omitempty"`
	Opened bool     `json:"opened,omitempty"` // the secrets of the backup are restored
	Nodes  []string `json:"nodes,omitempty"`  // nodes that get their data when they are created
}

// Untouched reports whether the restore has changed nothing, and the previous state still exists.
func (r *RestoreProgress) Untouched() bool { return !r.Going && (r.Clears || r.ID == "") }

// PendingNodes returns the nodes that get their data when they are created, or nil if no restore is in
// progress.
func (r *RestoreProgress) PendingNodes() []string {
	if r == nil {
		return nil
	}
	return r.Nodes
}

// RestorePending reports whether a node's data waits on host h since a restore removed the node there. It
// also requires that the restore left out all hosts in unknown state, so that none of these has the
// node.
func (h *Host) RestorePending(node string, hosts map[string]*Host) bool {
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
