package here

import (
	"fmt"
	"io"
	"strconv"

	"orrery/internal/engine/xen"
	"orrery/internal/problem"
)

// IsXenCall reports whether the arguments of this program are those of a call by Xen's toolstack for
// the domain of a node. Users never make such calls.
func IsXenCall(args []string) bool {
	return len(args) > 0 && (args[0] == xen.ModelVerb || args[0] == xen.LinkVerb)
}

// RunXenCall carries out a call of the toolstack and returns the exit status. Errors are written to the
// toolstack's logs.
func RunXenCall(args []string, to io.Writer) int {
	err := runXenVerb(args[0], args[1:])
	if err != nil {
		fmt.Fprintf(to, "orrery %s: %v\n", args[0], err)
	}
	return problem.ExitCode(err)
}

func runXenVerb(verb string, args []string) error {
	switch {
	case verb == xen.ModelVerb && len(args) >= 1: // a file, and the arguments of QEMU
		return xen.RunDeviceModel(args[0], args[1:])
	case verb == xen.LinkVerb && len(args) == 3: // directory of a node, number of an interface, link
		i, err := strconv.Atoi(args[1])
		if err != nil {
			return problem.New(problem.Usage, "%q is not an interface number", args[1])
		}
		return xen.SetUpLink(args[0], i, args[2])
	}
	return problem.New(problem.Usage, "unexpected number of arguments: %d", len(args))
}
