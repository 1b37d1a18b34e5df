// Package dom0 is what Xen's toolstack calls for the domain of a node; users never call it.
package dom0

import (
	"fmt"
	"io"
	"strconv"

	"orrery/internal/engine/xen"
	"orrery/internal/problem"
)

// Asked reports whether the arguments of this program are those by which the toolstack runs it.
func Asked(args []string) bool {
	return len(args) > 0 && (args[0] == xen.ModelVerb || args[0] == xen.LinkVerb)
}

// Run does what is asked, and returns the exit status. What goes wrong is for the logs of the toolstack.
func Run(args []string, to io.Writer) int {
	err := do(args[0], args[1:])
	if err != nil {
		fmt.Fprintf(to, "orrery %s: %v\n", args[0], err)
	}
	return problem.Exit(err)
}

func do(verb string, args []string) error {
	switch {
	case verb == xen.ModelVerb && len(args) >= 1: // a file, and what QEMU is told
		return xen.Model(args[0], args[1:])
	case verb == xen.LinkVerb && len(args) == 3: // the directory of a node, the number of an interface, a link
		i, err := strconv.Atoi(args[1])
		if err != nil {
			return problem.New(problem.Usage, "%q is not the number of an interface", args[1])
		}
		return xen.Link(args[0], i, args[2])
	}
	return problem.New(problem.Usage, "%d arguments are not understood", len(args))
}
