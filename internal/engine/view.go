package engine

import (
	"fmt"

	"orrery/internal/tree"
)

// OpenView opens a directory of a running node as a process sees it that belongs to the node, for
// as long as that runs: as long as its number is given, which is 0 if there is none.
func OpenView(ref Ref, pid func() int, dir string) (*tree.Root, error) {
	current := pid()
	if current == 0 {
		return nil, NotRunning(ref)
	}
	root, err := tree.Open(fmt.Sprintf("/proc/%d/root%s", current, dir))
	if err != nil {
		return nil, err
	}
	if pid() != current { // it ended meanwhile, and the number may be another's
		root.Close() //nolint:errcheck // nothing was written
		return nil, NotRunning(ref)
	}
	return root, nil
}
