// Command man writes the manual pages of orrery into a directory such as /usr/share/man:
// go run ./packaging/man DIRECTORY VERSION.
//
// It is a program of its own because the libraries that write pages took half a millisecond at each
// start of orrery.
package main

import (
	"fmt"
	"os"

	"orrery/internal/cli"
	"orrery/internal/cli/labverb"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: man DIRECTORY VERSION")
		os.Exit(2)
	}
	if err := write(cli.Verbs(labverb.Lab{}), os.Args[2], os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}
