package cli

import (
	"fmt"
	"os"

	"orrery/internal/control/here"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/rehearsal"
)

// Main is the main function of orrery, and with a lab that of orrery-lab. It does not return.
func Main(lab Lab) {
	rehearsal.RunRole() // if this process is part of a rehearsal
	if err := host.CloseInheritedOnExec(); err != nil {
		fmt.Fprintln(os.Stderr, "orrery:", err)
		os.Exit(int(problem.Unable))
	}
	args := os.Args[1:]
	if here.IsXenCall(args) { // called by Xen's toolstack
		os.Exit(here.RunXenCall(args, os.Stderr))
	}
	os.Exit(Run(args, lab, os.Stdin, os.Stdout, os.Stderr))
}
