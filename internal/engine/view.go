package engine

import (
	"fmt"

	"orrery/internal/tree"
)

// OpenAsProcess opens a directory of a running node as the process with the id pid sees it. pid returns
// 0 if no such process of the node runs.
func OpenAsProcess(ref Ref, pid func() int, dir string) (*tree.Root, error) {
	current := pid()
	if current == 0 {
		return nil, NotRunning(ref)
	}
	root, err := tree.Open(fmt.Sprintf("/proc/%d/root%s", current, dir))
	if err != nil {
		return nil, err
	}
	if pid() != current { // the process has ended, and its id may belong to another process
		root.Close() //nolint:errcheck // nothing was written
		return nil, NotRunning(ref)
	}
	return root, nil
}
