// Command orrery turns a site file into running virtual clusters.
package main

import (
	"os"

	"orrery/internal/cli"
	"orrery/internal/control/dom0"
	"orrery/internal/rehearsal"
)

func main() {
	rehearsal.RunRole() // if this is a part of a rehearsal
	args := os.Args[1:]
	if dom0.Asked(args) { // by Xen's toolstack
		os.Exit(dom0.Run(args, os.Stderr))
	}
	os.Exit(cli.Run(args, os.Stdin, os.Stdout, os.Stderr))
}
