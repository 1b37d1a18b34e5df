// Command orrery turns a site file into running virtual clusters.
package main

import (
	"fmt"
	"os"

	"orrery/internal/cli"
	"orrery/internal/control/dom0"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/rehearsal"
)

func main() {
	rehearsal.RunRole() // if this process is part of a rehearsal
	if err := host.CloseInheritedOnExec(); err != nil {
		fmt.Fprintln(os.Stderr, "orrery:", err)
		os.Exit(int(problem.Unable))
	}
	args := os.Args[1:]
	if dom0.IsCall(args) { // called by Xen's toolstack
		os.Exit(dom0.Run(args, os.Stderr))
	}
	os.Exit(cli.Run(args, os.Stdin, os.Stdout, os.Stderr))
}
